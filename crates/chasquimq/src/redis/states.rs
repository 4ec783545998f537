//! What tells whether anything has happened in a queue. The workers of a thread look at the same time, and ask for that in one call.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::oneshot;

use super::{
    call::{
        library::{Arg, READ_STATES},
        reply::Reply,
    },
    connection::Connection,
};
use crate::{
    error::{Error, Result},
    keys::slot_of,
};

/// How long is waited for others who ask.
const GATHERING: Duration = Duration::from_millis(20);
/// Queues that one call tells of: the server works on it for a millisecond.
const QUEUES_A_CALL: usize = 1000;

/// Where the numbers of jobs that wait and that are active are in a state (`lua/queue/state.lua`), bytes.
const WAITING_AT: usize = 24;
const ACTIVE_AT: usize = 32;

/// A queue's state, as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    state: Vec<u8>,
    delays: Vec<u8>,
}

impl Stored {
    #[cfg(test)]
    pub fn new(state: Vec<u8>, delays: Vec<u8>) -> Self {
        Self { state, delays }
    }

    /// Whether a job waits.
    pub fn has_waiting(&self) -> bool {
        self.counts_any(WAITING_AT)
    }

    /// Whether a job is active.
    pub fn has_active(&self) -> bool {
        self.counts_any(ACTIVE_AT)
    }

    fn counts_any(&self, at: usize) -> bool {
        let zero = 0_f64.to_le_bytes();
        self.state.get(at..at + zero.len()).is_some_and(|count| count != zero)
    }
}

/// Who has asked, and for which queue.
type Asked = (String, oneshot::Sender<Result<Stored>>);

/// Those who ask by one connection.
#[derive(Debug, Default)]
pub(super) struct Gathered(Mutex<Vec<Asked>>);

impl Gathered {
    /// Gives whether nobody else has asked.
    fn add(&self, asked: Asked) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(asked);
        all.len() == 1
    }

    fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

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
    Ok(Stored {
        state: reply.opt_bytes()?.unwrap_or_default(),
        delays: reply.opt_bytes()?.unwrap_or_default(),
    })
}
