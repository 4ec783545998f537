//! What tells whether anything has happened in a queue. The workers of a thread look at the same time, and ask for that in one call.

use std::{collections::BTreeMap, time::Duration};

use redis::Value;
use tokio::sync::oneshot;

use super::{
    call::{
        library::{Arg, READ_STATES},
        reply::Reply,
    },
    connection::Connection,
    gathered::{Asked, AtTime, Stored},
};
use crate::{
    error::{Error, Result},
    keys::slot_of,
};

/// How long is waited for others who ask.
const GATHERING: Duration = Duration::from_millis(20);
/// Queues that one call tells of: the server works on it for a millisecond.
const QUEUES_A_CALL: usize = 1000;

impl Connection {
    /// The state of the queue whose keys start with `base`, in one call with all who ask at the same time.
    /// # Errors
    /// As [`Connection::send`].
    pub(crate) async fn stored_state(&self, base: &str) -> Result<AtTime> {
        let link = self.link().await?;
        let (tell, told) = oneshot::channel();
        if link.gathered().add((base.to_owned(), tell)) {
            let connection = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(GATHERING).await;
                connection.ask_for_all(link.gathered().take()).await;
            });
        }
        told.await.unwrap_or(Err(Error::Closed))
    }

    async fn ask_for_all(&self, all: Vec<Asked>) {
        let mut by_slot: BTreeMap<u16, Vec<Asked>> = BTreeMap::new();
        for asked in all {
            // elsewhere one call reaches every queue
            let slot = if self.is_of_cluster() { slot_of(&asked.0) } else { 0 };
            by_slot.entry(slot).or_default().push(asked);
        }
        for mut together in by_slot.into_values() {
            while !together.is_empty() {
                let others = together.split_off(together.len().min(QUEUES_A_CALL));
                self.ask_at_once(std::mem::replace(&mut together, others)).await;
            }
        }
    }

    async fn ask_at_once(&self, some: Vec<Asked>) {
        let (first, others) = (&some[0].0, &some[1..]);
        let others: Vec<_> = others.iter().map(|(base, _)| Arg::from(base.as_str())).collect();
        let read = READ_STATES.run(&self.for_keys(first), first, &others).await;
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
