//! A queue seen from outside its workers. Workers never need this.
//!
//! A job is found by its id in [`by_id`], by its state and rank in [`lists`]. One that waits in a frame is found by two plain reads (`waiting`), any
//! other by `lua/reads/read_jobs.lua`. While the queue is asked nothing else, a look at one job goes by the socket of its adds ([`look`]).
//!
//! Every command may fail as [`Connection::send`] does; what else may be wrong stands beside the command.

pub mod bulk;
pub mod by_id;
pub mod cancel;
pub mod find;
pub mod groups;
pub mod latency;
pub mod libraries;
pub mod lists;
mod logs;
pub mod look;
mod memos;
pub mod metrics;
mod removal;
pub mod search;
mod settings;
mod waiting;

use redis::Value;

#[cfg(unix)]
use crate::{
    add::{AddBatch, Added, Producer},
    error::{Error, Result},
    keys::Keys,
    redis::{
        call::{
            library::{Arg, Script},
            numbered_calls::Calls,
            reply::{int, Reply},
        },
        connection::Connection,
        session::ConnectionEvent,
        sharing::{Access, Use},
        wire::Watch,
    },
};

/// A queue.
#[derive(Debug)]
pub struct Queue {
    connection: Connection,
    keys: Keys,
    producer: Producer,
    calls: Calls,
    waiting: waiting::WaitingJobs,
    // the connection is another queue's
    is_guest: bool,
}

impl Queue {
    /// A queue that is not connected yet.
    pub fn new(
        access: impl Into<Access>,
        keys: Keys,
        listener: impl Fn(ConnectionEvent) + Send + Sync + 'static,
    ) -> Self {
        let access = access.into().for_keys(&keys.base);
        Self::over(Connection::shared(access, Use::Calls, listener), keys, false)
    }

    /// A queue by the connection of another one, which tells of it and closes it.
    #[must_use]
    pub fn beside(host: &Self, keys: Keys) -> Self {
        Self::over(host.connection.for_keys(&keys.base), keys, true)
    }

    fn over(connection: Connection, keys: Keys, is_guest: bool) -> Self {
        let producer = Producer::new(connection.clone(), keys.clone());
        Self {
            connection,
            keys,
            producer,
            calls: Calls::default(),
            waiting: waiting::WaitingJobs::default(),
            is_guest,
        }
    }

    /// Connects.
    /// # Errors
    /// As [`Connection::ready`].
    pub async fn ready(&self) -> Result<()> {
        self.connection.ready().await
    }

    /// Tidies up after this queue's calls. Call it before [`Queue::close`], when no add is under way.
    pub async fn forget_calls(&self) {
        tokio::join!(self.producer.forget(), self.calls.forget(&self.connection, &self.keys));
    }

    /// Closes the connection, unless it is another queue's; calls under way end with [`Error::Closed`].
    pub fn close(&self) {
        if !self.is_guest {
            self.connection.close();
        }
    }

    /// True after [`Queue::close`].
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// True while there is a connection.
    pub fn is_connected(&self) -> bool {
        self.connection.is_connected()
    }

    /// The queue's keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Adds jobs, exactly once, in one atomic step.
    /// # Errors
    /// As [`Producer::add`].
    pub async fn add(&self, batch: AddBatch) -> Result<Added> {
        self.producer.add(batch).await
    }

    /// What adds, for an event loop that sends calls itself.
    pub fn producer(&self) -> &Producer {
        &self.producer
    }

    /// The connection as an event loop sees it; `None` once closed.
    /// # Errors
    /// As [`Connection::watch`].
    #[cfg(unix)]
    pub async fn watch(&self, wake: impl Fn() + Send + 'static) -> Result<Option<Watch>> {
        self.connection.watch(wake).await
    }

    /// What the commands go by.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs a script.
    /// # Errors
    /// As [`Script::run`].
    pub async fn run(&self, script: &Script, args: &[Arg<'_>]) -> Result<Value> {
        script.run(&self.connection, &self.keys.base, args).await
    }

    /// Runs a script that answers with an array.
    /// # Errors
    /// As [`Script::run`], and [`Error::Malformed`].
    pub async fn ask(&self, script: &Script, args: &[Arg<'_>]) -> Result<Reply> {
        script.ask(&self.connection, &self.keys.base, args).await
    }

    /// Runs a script that answers with a number.
    pub(crate) async fn ask_int(&self, script: &Script, args: &[Arg<'_>]) -> Result<i64> {
        int(script.name, &self.run(script, args).await?)
    }

    /// Runs a script that is carried out once however often it is sent. Its arguments begin with `now_ms`, if it wants that, and with the call's
    /// client, slot and number (`lua/queue/memo.lua`).
    /// # Errors
    /// As [`Script::run`], and [`Error::Unconfirmed`] when no answer comes for so long that the server may have forgotten the call.
    pub async fn run_once(&self, script: &Script, now_ms: impl Into<Option<u64>>, args: &[Arg<'_>]) -> Result<Value> {
        self.run_once_at(&self.keys.base, script, now_ms, args).await
    }

    /// The same of one that answers with a number.
    pub(crate) async fn int_once(
        &self,
        script: &Script,
        now_ms: impl Into<Option<u64>>,
        args: &[Arg<'_>],
    ) -> Result<i64> {
        int(script.name, &self.run_once(script, now_ms, args).await?)
    }

    /// As [`Queue::run_once`], on the queue with this base.
    pub(crate) async fn run_once_at(
        &self,
        base: &str,
        script: &Script,
        now_ms: impl Into<Option<u64>>,
        args: &[Arg<'_>],
    ) -> Result<Value> {
        let connection = self.connection.for_keys(base);
        self.calls.run(&connection, base, script, now_ms, args).await
    }
}

/// The number that a script answers; a negative one is an error about the job.
pub(crate) fn read_code(script: &Script, reply: &Value, id: &str, state: &str, command: &'static str) -> Result<i64> {
    let number = int(script.name, reply)?;
    if number < 0 {
        return Err(Error::from_code(number, id, state, command));
    }
    Ok(number)
}
