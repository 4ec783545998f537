//! One open connection, as calls of the engine see it: commands in, replies out, until it breaks.

use std::{
    any::Any,
    future::Future,
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc, OnceLock, Weak,
    },
};

use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};

use super::{
    call::reply::is_replica,
    failure::is_broken,
    gathered::Gathered,
    reach::{client_names::Names, dial, login_end::Login, options::ConnectOptions},
    wire::{refusal, refused, transport::Transport, Answer, Listener, Wire},
};
use crate::error::Error;

/// An open connection that many tasks share. It closes with its last clone.
#[derive(Clone)]
pub(crate) struct Link {
    known: Arc<Known>,
}

/// The connection, and where to it leads.
struct Known {
    wire: Wire,
    server: Arc<ConnectOptions>,
    // it was a master at login, and ROLE is allowed
    is_master: AtomicBool,
    // the server tells by it what it was not asked for
    bears_news: AtomicBool,
    // the server's INFO at login
    info: OnceLock<String>,
    // by what others find it
    shared_by: OnceLock<Arc<dyn Any + Send + Sync>>,
    names: Names,
    gathered: Gathered,
    login: Login,
}

/// A connection that others keep open.
pub(crate) struct WeakLink(Weak<Known>);

impl WeakLink {
    /// The connection, if it is there and of use.
    pub fn upgrade(&self) -> Option<Link> {
        let link = Link {
            known: self.0.upgrade()?,
        };
        (!link.is_over()).then_some(link)
    }
}

impl Link {
    /// Connects without logging in.
    pub async fn open(server: Arc<ConnectOptions>) -> RedisResult<Self> {
        Ok(Self::over(dial::open(&server).await?, server))
    }

    fn over(transport: Transport, server: Arc<ConnectOptions>) -> Self {
        let peer = transport.socket().peer();
        let peer = peer.unwrap_or_else(|| format!("{:?}", server.path));
        let place = format!("{peer} {} {:?}", server.db, server.username);
        Self {
            known: Arc::new(Known {
                wire: Wire::over(transport, place),
                server,
                is_master: AtomicBool::new(false),
                bears_news: AtomicBool::new(false),
                info: OnceLock::new(),
                shared_by: OnceLock::new(),
                names: Names::default(),
                gathered: Gathered::default(),
                login: Login::default(),
            }),
        }
    }

    /// The connection itself.
    pub fn wire(&self) -> &Wire {
        &self.known.wire
    }

    /// For how long it is logged in.
    pub fn login(&self) -> &Login {
        &self.known.login
    }

    /// It, as long as others keep it open.
    pub fn downgrade(&self) -> WeakLink {
        WeakLink(Arc::downgrade(&self.known))
    }

    /// Others may have it, and find it by this, which is there as long as it is.
    pub fn shared_by(&self, shared_by: Arc<dyn Any + Send + Sync>) -> WeakLink {
        let _ = self.known.shared_by.set(shared_by);
        self.downgrade()
    }

    /// Has the server know it by this name, too, as long as that is there.
    pub async fn named(&self, name: &str) -> Named {
        self.known.names.add(name);
        let named = Named {
            name: name.to_owned(),
            link: self.clone(),
        };
        self.known.names.tell(&self.known.wire).await;
        named
    }

    /// Those who ask by it at the same time.
    pub(super) fn gathered(&self) -> &Gathered {
        &self.known.gathered
    }

    /// Notes what the server said of itself at login.
    pub fn note_info(&self, info: String) {
        let _ = self.known.info.set(info);
    }

    /// What the server said of itself at login.
    pub fn info(&self) -> &str {
        self.known.info.get().map_or("", String::as_str)
    }

    /// Its user needs it no more: it closes, unless others have it.
    pub fn leave(self) {
        if self.known.shared_by.get().is_none() {
            self.cut();
        }
    }

    /// The server's options.
    pub fn server(&self) -> &Arc<ConnectOptions> {
        &self.known.server
    }

    /// Notes that the server is a master, which [`Link::ask_master`] then verifies with each command.
    pub fn note_master(&self) {
        self.known.is_master.store(true, Ordering::Relaxed);
    }

    /// Has the server tell by it what it was not asked for, if it can.
    pub async fn ask_for_news(&self) -> RedisResult<()> {
        match self.ask(redis::cmd("HELLO").arg(3)).await {
            Err(error) if is_broken(&error) => return Err(error),
            agreed => self.known.bears_news.store(agreed.is_ok(), Ordering::Relaxed),
        }
        Ok(())
    }

    /// Has somebody hear what comes by a channel.
    pub async fn listen(&self, channel: &str, listener: Arc<dyn Listener>) -> RedisResult<()> {
        if !self.known.bears_news.load(Ordering::Relaxed) {
            return Err(refusal("NOPROTO this server tells nothing by channels"));
        }
        self.known.wire.add_listener(channel, listener);
        self.ask(redis::cmd("SSUBSCRIBE").arg(channel)).await.map(drop)
    }

    /// Whether a read is to be believed only where the server is still a master.
    pub fn verifies_master(&self) -> bool {
        self.known.is_master.load(Ordering::Relaxed)
    }

    /// An ACL forbids ROLE: nobody asks again.
    pub fn role_is_refused(&self) {
        self.known.is_master.store(false, Ordering::Relaxed);
    }

    /// Sends a command that a replica would answer, too, with stale data. If the server was a master at login and no longer is, the
    /// reply counts as `READONLY`.
    pub async fn ask_master(&self, command: &Cmd) -> RedisResult<Value> {
        self.of_master(self.ask(command)).await
    }

    /// The same for a pipeline.
    pub async fn ask_all_of_master(&self, pipeline: &Pipeline, count: usize) -> RedisResult<Vec<Value>> {
        self.of_master(self.ask_all(pipeline, count)).await
    }

    async fn of_master<T>(&self, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        if !self.verifies_master() {
            return answer.await;
        }
        let role = redis::cmd("ROLE");
        // in this order: it was still a master after the reply
        let (answer, role) = tokio::join!(biased; answer, self.ask(&role));
        let has_changed = match role {
            Ok(role) => is_replica(&role),
            Err(_) => {
                self.role_is_refused();
                false
            }
        };
        match answer {
            Ok(_) if has_changed => {
                Err((ErrorKind::Server(ServerErrorKind::ReadOnly), "it has become a replica").into())
            }
            answer => answer,
        }
    }

    /// Sends a command; an error reply becomes an `Err`.
    pub async fn ask(&self, command: &Cmd) -> RedisResult<Value> {
        let answers = self.known.wire.ask(command.get_packed_command(), 1).await?;
        answers
            .into_iter()
            .next()
            .map_or(Ok(Value::Nil), |answer| answer.map_err(|error| refusal_of(&error)))
    }

    /// Sends a pipeline. A reply in it may be an error.
    pub async fn ask_all(&self, pipeline: &Pipeline, count: usize) -> RedisResult<Vec<Value>> {
        let answers = self.known.wire.ask(pipeline.get_packed_pipeline(), count).await?;
        answers.into_iter().map(to_value).collect()
    }

    /// What came that no server of Redis sends, if it is for that that it broke.
    pub fn fault(&self) -> Option<RedisError> {
        self.known.wire.fault()
    }

    /// Whether it is closed, or broken as far as is known.
    pub fn is_over(&self) -> bool {
        self.known.wire.is_over()
    }

    /// Closes it, and fails all calls in flight.
    pub fn cut(&self) {
        self.known.wire.cut();
    }

    /// Ends with the connection, which it does not keep open.
    pub fn ended(&self) -> impl Future<Output = ()> + use<> {
        self.known.wire.ended()
    }
}

/// A name that a connection bears for one of its users.
pub(crate) struct Named {
    name: String,
    link: Link,
}

impl Named {
    /// The server knows it no more once this has ended.
    pub async fn forget(self) {
        let link = self.link.clone();
        drop(self);
        link.known.names.tell(&link.known.wire).await;
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let Known { names, wire, .. } = &*self.link.known;
        // one that nobody has a name for is about to close
        if names.remove(&self.name) {
            drop(names.send(wire));
        }
    }
}

fn refusal_of(error: &Error) -> RedisError {
    match error {
        Error::Refused(words) => refusal(words),
        other => refusal(&other.to_string()),
    }
}

fn to_value(answer: Answer) -> RedisResult<Value> {
    match answer {
        Ok(value) => Ok(value),
        Err(Error::Refused(words)) => refused(&words),
        Err(other) => Err(refusal_of(&other)),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::UnixStream,
    };

    use super::*;
    use crate::redis::failure::to_error;

    fn link() -> (Link, UnixStream) {
        let (near, far) = UnixStream::pair().expect("a pair");
        let transport = Transport::new(near.try_into().expect("a socket"), None);
        (Link::over(transport, Arc::default()), far)
    }

    #[tokio::test]
    async fn a_connection_that_breaks_is_noticed_when_nothing_is_under_way() {
        let (link, server) = link();
        let ended = link.ended();
        drop(server);
        tokio::time::timeout(Duration::from_secs(10), ended)
            .await
            .expect("its end");
    }

    #[tokio::test]
    async fn what_a_server_says_to_a_client_that_it_turns_away_is_why_the_connection_broke() {
        let (link, mut server) = link();
        let words = b"-ERR max number of clients reached\r\n";
        server.write_all(words).await.expect("room for it");
        drop(server);
        link.ended().await;
        let error = link.ask(&redis::cmd("PING")).await.expect_err("its words");
        assert_eq!(error.detail(), Some("max number of clients reached"));
    }

    #[tokio::test]
    async fn what_no_server_sends_ends_the_connection_and_every_call_is_told_why() {
        for foreign in [
            "HTTP/1.1 400 Bad Request\r\n\r\n".to_owned(),
            "+PONG\r\n:x\r\n".to_owned(),
            "*1\r\n".repeat(1_000_000),
            "*9223372036854775807\r\n".to_owned(),
            "$9223372036854775807\r\n".to_owned(),
            "%-1\r\n".to_owned(),
            "+".repeat(3 << 20),
        ] {
            let (link, mut server) = link();
            let calls: Vec<_> = (0..3)
                .map(|_| {
                    let link = link.clone();
                    tokio::spawn(async move { link.ask(&redis::cmd("PING")).await })
                })
                .collect();
            let mut asked = [0; 3 * 14];
            server.read_exact(&mut asked).await.expect("calls");
            // the connection may break before all of it is there
            let _ = server.write_all(foreign.as_bytes()).await;
            let mut told = 0;
            for call in calls {
                match call.await.expect("a caller") {
                    Ok(value) => assert_eq!(value, Value::SimpleString("PONG".to_owned())),
                    Err(error) => {
                        assert!(is_broken(&error), "{error:?}");
                        let message = to_error(&error, &ConnectOptions::default()).to_string();
                        assert!(message.contains("does not speak the protocol of Redis"), "{message}");
                        told += 1;
                    }
                }
            }
            assert!(told >= 2);
            link.ended().await;
            assert!(link.fault().is_some());
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_call_made_in_the_moment_in_which_the_connection_breaks_is_answered() {
        const BREAKS: usize = 20_000;
        for _ in 0..BREAKS {
            let (link, mut server) = link();
            let callers: Vec<_> = (0..4)
                .map(|_| {
                    let link = link.clone();
                    tokio::spawn(async move { while link.ask(&redis::cmd("PING")).await.is_ok() {} })
                })
                .collect();
            // answers the first call, and hangs up
            let mut call = [0; 14];
            server.read_exact(&mut call).await.expect("a call");
            server.write_all(b"+PONG\r\n").await.expect("a caller");
            drop(server);
            for caller in callers {
                let answered = tokio::time::timeout(Duration::from_secs(10), caller).await;
                answered.expect("a call without an answer").expect("a caller");
            }
        }
    }
}
