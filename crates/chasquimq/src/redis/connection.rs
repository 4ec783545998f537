//! One connection to Redis that reconnects by itself. Calls wait while it reconnects, and fail once it is closed.

mod waits;
#[cfg(unix)]
mod watch;

use std::{
    collections::HashMap,
    future::Future,
    io::{self, ErrorKind},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redis::{Cmd, RedisError, Value};

use super::{
    call::functions::{Found, Functions},
    failure::{answer_to, is_broken, is_passing, to_error},
    link::Link,
    reach::{discovery::slot_of_each_master, options::ConnectOptions},
    session::{ConnectionEvent, Session, FIRST_RETRY},
    sharing::{Access, Use},
};
use crate::{
    error::{Error, Refusal, Result},
    keys::slot_of,
};

// the longest pause between two looks for the new master of a failover
const LAST_LOOK: Duration = Duration::from_millis(400);

/// A connection that opens when it is first used, and again when it breaks.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    session: Arc<Session>,
    // in a cluster: connections to where the keys of other queues are
    others: Mutex<HashMap<u16, Connection>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("options", &self.session().options)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// A connection that is not open yet.
    pub fn new(options: ConnectOptions, listener: impl Fn(ConnectionEvent) + Send + Sync + 'static) -> Self {
        Self::over(Session::new(options.into(), None, Arc::new(listener)))
    }

    /// The same; what it opens is shared with others who want this.
    pub(crate) fn shared(
        access: Access,
        wanted: Use,
        listener: impl Fn(ConnectionEvent) + Send + Sync + 'static,
    ) -> Self {
        Self::over(Session::new(access, Some(wanted), Arc::new(listener)))
    }

    fn over(session: Arc<Session>) -> Self {
        Self {
            shared: Arc::new(Shared {
                session,
                others: Mutex::default(),
            }),
        }
    }

    fn session(&self) -> &Session {
        &self.shared.session
    }

    /// The connection for keys that start with `base`: in a cluster it may be another one, which closes with this one.
    pub(crate) fn for_keys(&self, base: &str) -> Self {
        let options = &self.session().options;
        let slots = options.slot().map(|own| (own, slot_of(base)));
        let Some((_, slot)) = slots.filter(|(own, wanted)| own != wanted) else {
            return self.clone();
        };
        let mut others = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner);
        let other = others
            .entry(slot)
            .or_insert_with(|| Self::over(self.session().beside(ConnectOptions::clone(options).for_keys(base))));
        if self.is_closed() {
            other.close();
        }
        other.clone()
    }

    /// A connection to each server that has keys of its own: in a cluster those of its masters, which close with this one.
    /// # Errors
    /// As [`Connection::send`].
    pub(crate) async fn masters(&self) -> Result<Vec<Self>> {
        if !self.is_of_cluster() {
            return Ok(vec![self.clone()]);
        }
        let slots = self.send(redis::cmd("CLUSTER").arg("SLOTS")).await?;
        let keys = slot_of_each_master(&slots).into_iter().filter_map(|slot| {
            // the first number that lies in the slot
            (0_u32..)
                .map(|number| number.to_string())
                .find(|key| slot_of(key) == slot)
        });
        Ok(keys.map(|key| self.for_keys(&key)).collect())
    }

    /// Whether the server belongs to a cluster, where a script reaches one slot.
    pub fn is_of_cluster(&self) -> bool {
        self.session().options.slot().is_some()
    }

    /// Connects once.
    /// # Errors
    /// The cause, when the server cannot be reached, refuses the login or is too old.
    pub async fn ready(&self) -> Result<()> {
        self.session().ready().await
    }

    /// Sends a command, and sends it again when the connection breaks before the reply, or the server has become a replica.
    /// Only for commands that may run twice.
    /// # Errors
    /// [`Error::Closed`] once closed, [`Error::Refused`], [`Error::ServerTooOld`].
    pub async fn send(&self, command: &Cmd) -> Result<Value> {
        self.send_while(command, false).await
    }

    /// The same for a command that always writes: a replica refuses it, so nobody asks the server for its role.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn send_write(&self, command: &Cmd) -> Result<Value> {
        self.send_while(command, true).await
    }

    async fn send_while(&self, command: &Cmd, writes: bool) -> Result<Value> {
        let (mut pause, mut has_broken) = (FIRST_RETRY, false);
        loop {
            let (link, generation) = self.session().connected().await?;
            if let Some(fault) = self.functions().fault_of(command) {
                return Err(fault);
            }
            match self.session().until_closed(self.ask(&link, command, writes)).await? {
                Ok(value) => return Ok(value),
                Err(error) if is_passing(&error) => {
                    self.session().until_closed(tokio::time::sleep(FIRST_RETRY)).await?
                }
                Err(error) if self.session().is_elsewhere(&error) => {
                    self.session().look_again(&error, &link, generation);
                    self.session().until_closed(tokio::time::sleep(pause)).await?;
                    pause = (pause * 2).min(LAST_LOOK);
                }
                Err(error) if is_broken(&error) => {
                    self.session().lose(generation);
                    // a server may end each connection that sends this
                    if std::mem::replace(&mut has_broken, true) {
                        self.session().until_closed(tokio::time::sleep(pause)).await?;
                        pause = (pause * 2).min(LAST_LOOK);
                    }
                }
                Err(error) => return Err(answer_to(command, &error, link.server())),
            }
        }
    }

    async fn ask(&self, link: &Link, command: &Cmd, writes: bool) -> redis::RedisResult<Value> {
        if writes && self.session().options.discovery.is_none() {
            return link.ask(command).await;
        }
        // boxed: rare and large, it would make every call's future larger
        let asked = async {
            match writes {
                true => link.ask(command).await,
                false => link.ask_master(command).await,
            }
        };
        Box::pin(self.unless_replaced(link, asked)).await
    }

    async fn unless_replaced<T>(
        &self,
        link: &Link,
        asked: impl Future<Output = redis::RedisResult<T>>,
    ) -> redis::RedisResult<T> {
        let answer = self.session().unless_replaced(link.server(), asked).await;
        answer.unwrap_or_else(|| Err(io::Error::from(ErrorKind::TimedOut).into()))
    }

    /// The same for what is sent once.
    async fn once<T>(&self, command: Option<&Cmd>, ask: impl AsyncFnOnce(&Link) -> redis::RedisResult<T>) -> Result<T> {
        let (link, generation) = self.session().connected().await?;
        let asked = Box::pin(self.unless_replaced(&link, ask(&link)));
        let answer = self.session().until_closed(asked).await?;
        answer.map_err(|error| self.failed_once(command, &error, &link, generation))
    }

    /// Sends a command once, without a retry.
    /// # Errors
    /// As [`Connection::send`], and [`Error::Connection`] when the connection breaks meanwhile.
    pub async fn send_once(&self, command: &Cmd) -> Result<Value> {
        self.once(Some(command), async |link| link.ask_master(command).await)
            .await
    }

    /// Sends a pipeline once. A reply in it may be an error.
    /// # Errors
    /// As [`Connection::send_once`].
    pub async fn send_pipeline_once(&self, pipeline: &redis::Pipeline, count: usize) -> Result<Vec<Value>> {
        self.once(None, async |link| link.ask_all(pipeline, count).await).await
    }

    /// The same for reads, which a replica would answer, too.
    /// # Errors
    /// As [`Connection::send_once`].
    pub(crate) async fn read_pipeline_once(&self, reads: &redis::Pipeline, count: usize) -> Result<Vec<Value>> {
        self.once(None, async |link| link.ask_all_of_master(reads, count).await)
            .await
    }

    fn failed_once(&self, command: Option<&Cmd>, error: &RedisError, link: &Link, generation: u64) -> Error {
        if self.is_closed() {
            return Error::Closed;
        }
        let is_elsewhere = self.session().is_elsewhere(error);
        if is_elsewhere {
            self.session().look_again(error, link, generation);
        } else if is_broken(error) {
            self.session().lose(generation);
        }
        let told = match command {
            Some(command) => answer_to(command, error, link.server()),
            None => to_error(error, link.server()),
        };
        match told {
            // the same call works once the server is ready or found
            Error::Refused(Refusal { message, .. }) if is_elsewhere || is_passing(error) => {
                Error::Connection { message, code: None }
            }
            other => other,
        }
    }

    /// What is known of the functions of the server.
    pub(super) fn functions(&self) -> &Functions {
        &self.session().functions
    }

    /// Notes what the server has of the library.
    pub(super) fn found(&self, found: Found) {
        self.session().found(found);
    }

    /// Whether calls go as scripts: the server's functions are not ours, or not for this user.
    pub(crate) fn needs_scripts(&self) -> bool {
        !self.functions().may_be_called()
    }

    /// Looks at the functions of the server, unless that was done so lately.
    /// # Errors
    /// As [`Connection::send`].
    pub(super) async fn look_at_functions(&self, lately: Duration) -> Result<()> {
        let (link, _) = self.session().connected().await?;
        self.session().look_at_functions(&link, lately).await;
        Ok(())
    }

    /// The open connection behind it.
    /// # Errors
    /// As [`Connection::send`].
    pub(super) async fn link(&self) -> Result<Link> {
        Ok(self.session().connected().await?.0)
    }

    /// The address of the server.
    /// # Errors
    /// As [`Connection::send`].
    pub(crate) async fn place(&self) -> Result<String> {
        Ok(self.link().await?.server().place())
    }

    /// Where the connection leads to, as [`Wire::place`] says; none while there is none.
    pub(crate) fn wire_place(&self) -> Option<String> {
        self.session().current().0.map(|link| link.wire().place().to_owned())
    }

    /// Closes for good. Calls under way, and later ones, end with [`Error::Closed`].
    pub fn close(&self) {
        self.session().close();
        let others = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner);
        for other in others.values() {
            other.close();
        }
    }

    /// Waits.
    /// # Errors
    /// [`Error::Closed`] as soon as it is closed.
    pub(crate) async fn rest(&self, pause: Duration) -> Result<()> {
        self.session().until_closed(tokio::time::sleep(pause)).await
    }

    /// True after [`Connection::close`].
    pub fn is_closed(&self) -> bool {
        self.session().is_closed()
    }

    /// True while there is a connection, as far as is known.
    pub fn is_connected(&self) -> bool {
        self.session().current().0.is_some()
    }

    /// Whether a read is to be believed only where the server is still a master.
    pub(crate) fn verifies_master(&self) -> bool {
        let link = self.session().current().0;
        link.is_none_or(|link| link.verifies_master())
    }

    /// This user may not ask for the role of the server.
    pub(crate) fn role_is_refused(&self) {
        if let (Some(link), _) = self.session().current() {
            link.role_is_refused();
        }
    }

    /// How often the connection reached another server process than before, or may have.
    pub(crate) fn servers(&self) -> u64 {
        self.session().servers()
    }

    /// Drops the connection, for instance because the server no longer replies; the next call opens another.
    pub fn drop_connection(&self) {
        let generation = self.session().current().1;
        self.session().lose(generation);
    }

    /// Has the server forget the name of a worker that goes.
    pub(crate) async fn forget_name(&self) {
        self.session().forget_name().await;
    }

    /// Drops the connection and all calls in flight without an event.
    pub fn discard_connection(&self) {
        self.session().discard();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn the_pause_before_it_is_tried_again_grows_to_half_a_second_and_no_further() {
        let began = tokio::time::Instant::now();
        let tries = Arc::new(Mutex::new(Vec::new()));
        let options = ConnectOptions {
            path: Some("/there/is/no/redis.sock".into()),
            ..ConnectOptions::default()
        };
        let noted = tries.clone();
        let connection = Connection::new(options, move |event| {
            if matches!(event, ConnectionEvent::Failed(_)) {
                noted.lock().expect("tries").push(began.elapsed().as_millis());
            }
        });
        let caller = connection.clone();
        let call = tokio::spawn(async move { caller.send(&redis::cmd("PING")).await });
        tokio::time::sleep(Duration::from_secs(3)).await;
        connection.close();
        assert!(matches!(call.await, Ok(Err(Error::Closed))));
        // the test's clock is paused
        let tries = tries.lock().expect("tries");
        let pauses: Vec<_> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 500, 500, 500, 500]);
    }
}
