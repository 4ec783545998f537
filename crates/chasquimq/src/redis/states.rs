//! What tells whether anything has happened in a queue. The workers of a thread look at the same time, and ask for that in one call.

use std::time::Duration;

use redis::Value;
use tokio::sync::oneshot;

use super::{
    call::{
        library::{args, READ_STATES},
        reply::Reply,
    },
    connection::Connection,
    gathered::{Asked, AtTime, Stored},
};
use crate::{
    error::{Error, Result},
    job::msgpack::Packer,
};

/// How long is waited for others who ask.
const GATHERING: Duration = Duration::from_millis(20);
/// Queues that one call tells of: the server works on it for a millisecond.
const QUEUES_A_CALL: usize = 1000;

impl Connection {
    /// The state of the queue whose keys start with `base`, which are where this connection leads; in one call with all who ask at the same time, but for a
    /// cluster, where one call reaches one slot.
    /// # Errors
    /// As [`Connection::send`].
    pub(crate) async fn stored_state(&self, base: &str) -> Result<AtTime> {
        let (tell, told) = oneshot::channel();
        let asked = (base.to_owned(), tell);
        if self.is_of_cluster() {
            self.ask_at_once(vec![asked]).await;
            return told.await.unwrap_or(Err(Error::Closed));
        }
        let link = self.link().await?;
        if link.gathered().add(asked) {
            let connection = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(GATHERING).await;
                let mut all = link.gathered().take();
                while !all.is_empty() {
                    let others = all.split_off(all.len().min(QUEUES_A_CALL));
                    connection.ask_at_once(std::mem::replace(&mut all, others)).await;
                }
            });
        }
        told.await.unwrap_or(Err(Error::Closed))
    }

    async fn ask_at_once(&self, some: Vec<Asked>) {
        let (first, mut others) = (&some[0].0, Packer::default());
        others.array(some.len() - 1);
        for (base, _) in &some[1..] {
            others.str(base);
        }
        let read = READ_STATES.run(self, first, &args![&others]).await;
        let mut read = read.and_then(read_states);
        for (_, tell) in some {
            let state = match &mut read {
                Ok((seconds, states)) => read_state(*seconds, states),
                Err(error) => Err(error.clone()),
            };
            // who asked may have gone
            let _ = tell.send(state);
        }
    }
}

fn read_states(reply: Value) -> Result<(i64, Reply)> {
    let mut reply = Reply::new(READ_STATES.name, reply)?;
    Ok((reply.int()?, reply.array()?))
}

fn read_state(seconds: i64, states: &mut Reply) -> Result<AtTime> {
    let (state, delays) = (states.opt_bytes()?, states.opt_bytes()?);
    Ok(AtTime {
        stored: Stored::new(state.unwrap_or_default(), delays.unwrap_or_default()),
        seconds,
    })
}
