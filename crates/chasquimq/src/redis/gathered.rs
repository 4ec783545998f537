//! Those who ask by one connection for the states of their queues (`states`), and what they are told.

use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::error::Result;

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

/// The same at a time.
#[derive(Debug)]
pub(crate) struct AtTime {
    pub stored: Stored,
    /// Of the server's clock, since the epoch.
    pub seconds: i64,
}

/// Who has asked, and for which queue.
pub(super) type Asked = (String, oneshot::Sender<Result<AtTime>>);

/// Those who ask by one connection.
#[derive(Debug, Default)]
pub(super) struct Gathered(Mutex<Vec<Asked>>);

impl Gathered {
    /// Gives whether nobody else has asked.
    pub fn add(&self, asked: Asked) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(asked);
        all.len() == 1
    }

    /// All of them; they are asked for now.
    pub fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
