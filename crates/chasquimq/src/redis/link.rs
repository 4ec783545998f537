//! One open connection: commands in, replies out, until it breaks.

use std::{
    future::Future,
    io,
    pin::pin,
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
};

use redis::{
    aio::MultiplexedConnection, AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisConnectionInfo, RedisError,
    RedisResult, ServerErrorKind, Value,
};
use tokio::{sync::watch, task::AbortHandle};

use super::{
    door::{Door, Words},
    failure::is_broken,
    options::ConnectOptions,
    reply::is_replica,
    stream::{self, Stream},
};

/// Commands that may lie before a connection that is busy. Those beyond would be sent in the order in which their tasks happen to run.
const MOST_UNSENT: usize = 1 << 20;

/// An open connection that many tasks share. It closes with its last clone.
#[derive(Clone)]
pub(super) struct Link {
    commands: MultiplexedConnection,
    // closes with the task that reads and writes
    alive: watch::Receiver<()>,
    driver: Arc<Driver>,
}

/// The task that reads and writes, and where to.
struct Driver {
    task: AbortHandle,
    server: Arc<ConnectOptions>,
    // it was a master at login, and ROLE is allowed
    is_master: AtomicBool,
    // why it turned this client away, or is no server
    words: Words,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    /// Connects without logging in: the library would hide the server's error message.
    pub async fn open(server: Arc<ConnectOptions>) -> RedisResult<Self> {
        Self::over(stream::open(&server).await?, server).await
    }

    async fn over(stream: impl Stream + 'static, server: Arc<ConnectOptions>) -> RedisResult<Self> {
        let login = RedisConnectionInfo::default().set_skip_set_lib_name();
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(MOST_UNSENT);
        let words = Words::default();
        let door = Door::new(stream, words.clone());
        let (commands, driver) = MultiplexedConnection::new_with_config(&login, door, config).await?;
        let (living, alive) = watch::channel(());
        let task = tokio::spawn(async move {
            driver.await;
            drop(living);
        });
        Ok(Self {
            commands,
            alive,
            driver: Arc::new(Driver {
                task: task.abort_handle(),
                server,
                is_master: AtomicBool::new(false),
                words,
            }),
        })
    }

    /// The server's options.
    pub fn server(&self) -> &Arc<ConnectOptions> {
        &self.driver.server
    }

    /// Notes that the server is a master, which [`Link::ask_master`] then verifies with each command.
    pub fn note_master(&self) {
        self.driver.is_master.store(true, Ordering::Relaxed);
    }

    /// Whether a read is to be believed only where the server is still a master.
    pub fn verifies_master(&self) -> bool {
        self.driver.is_master.load(Ordering::Relaxed)
    }

    /// An ACL forbids ROLE: nobody asks again.
    pub fn role_is_refused(&self) {
        self.driver.is_master.store(false, Ordering::Relaxed);
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
        let mut commands = self.commands.clone();
        let answer = self.while_alive(commands.send_packed_command(command)).await?;
        answer.extract_error()
    }

    /// Sends a pipeline.
    pub async fn ask_all(&self, pipeline: &Pipeline, count: usize) -> RedisResult<Vec<Value>> {
        let mut commands = self.commands.clone();
        self.while_alive(commands.send_packed_commands(pipeline, 0, count))
            .await
    }

    /// What came that no server of Redis sends, if it is for that that it broke.
    pub fn fault(&self) -> Option<RedisError> {
        self.driver.words.fault()
    }

    /// Closes it, and fails all calls in flight.
    pub fn cut(&self) {
        self.driver.task.abort();
    }

    /// Ends with the connection, which it does not keep open.
    pub fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut alive = self.alive.clone();
        async move {
            let _ = alive.changed().await;
        }
    }

    /// The answer; of a connection that broke the reason, where the server has told one.
    async fn while_alive<T>(&self, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        self.unless_it_ends(answer)
            .await
            .map_err(|error| match is_broken(&error) {
                true => self.driver.words.error().unwrap_or(error),
                false => error,
            })
    }

    /// A command that reaches the driver's queue just when the driver ends would never get a reply: this fails it.
    async fn unless_it_ends<T>(&self, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        let mut alive = self.alive.clone();
        let mut answer = pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            _ = alive.changed() => {}
        }
        // the reply may have been the last thing to arrive
        tokio::select! {
            biased;
            answer = answer => answer,
            () = std::future::ready(()) => Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{duplex, AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::redis::failure::to_error;

    #[tokio::test]
    async fn a_connection_that_breaks_is_noticed_when_nothing_is_under_way() {
        let (stream, server) = duplex(64);
        let link = Link::over(stream, Arc::default()).await.expect("a link");
        let ended = link.ended();
        drop(server);
        tokio::time::timeout(Duration::from_secs(10), ended)
            .await
            .expect("its end");
    }

    #[tokio::test]
    async fn what_a_server_says_to_a_client_that_it_turns_away_is_why_the_connection_broke() {
        let (stream, mut server) = duplex(64);
        let link = Link::over(stream, Arc::default()).await.expect("a link");
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
            let (stream, mut server) = duplex(1 << 16);
            let link = Link::over(stream, Arc::default()).await.expect("a link");
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
            let (stream, mut server) = duplex(64);
            let link = Link::over(stream, Arc::default()).await.expect("a link");
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
