//! What tells whether anything has happened in a queue. The workers of a thread look at the same time, and ask for that in one call.

use std::{collections::BTreeMap, time::Duration};

use tokio::sync::oneshot;

use super::{
    call::{
        library::{Arg, READ_STATES},
        reply::Reply,
    },
    connection::Connection,
    gathered::{Asked, Stored},
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
    pub(crate) async fn stored_state(&self, base: &str) -> Result<Stored> {
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
        let mut read = read.and_then(|states| Reply::new(READ_STATES.name, states));
        for (_, tell) in some {
            let stored = read.as_mut().map_err(|error| error.clone()).and_then(read_stored);
            // who asked may have gone
            let _ = tell.send(stored);
        }
    }
}

fn read_stored(reply: &mut Reply) -> Result<Stored> {
    let (state, delays) = (reply.opt_bytes()?, reply.opt_bytes()?);
    Ok(Stored::new(state.unwrap_or_default(), delays.unwrap_or_default()))
}
