//! How jobs ended, as whoever runs them reports it.

use std::{collections::BTreeMap, sync::Arc};

use crate::job::options::JobOptions;

/// Bytes of a result that goes through scripts with others; Lua copies it several times on its way. A larger one lies apart, with a record of
/// its job's own (`lua/jobs/large.lua`).
pub(crate) const MAX_RESULT: usize = 4 * 1024;

/// Outcomes reported together.
#[derive(Debug, Default)]
pub struct Report {
    /// Counts up from 1.
    pub number: u64,
    /// The caller's clock, epoch ms.
    pub now_ms: u64,
    /// Jobs that completed.
    pub completed: Vec<Completed>,
    /// Their results, JSON texts, back to back.
    pub text: Arc<String>,
    /// Jobs that ended any other way.
    pub others: Vec<Ended>,
    /// Options that handlers have changed, by handle: those with which their jobs end.
    pub changed: BTreeMap<u32, Arc<JobOptions>>,
}

impl Report {
    /// Jobs of a frame that completed one behind the other stand so afterwards.
    pub(crate) fn sort(&mut self) {
        if !self.completed.is_sorted_by_key(|job| job.handle) {
            self.completed.sort_unstable_by_key(|job| job.handle);
        }
    }

    /// Whether it has jobs, and all of them go back unstarted.
    pub(crate) fn is_returning(&self) -> bool {
        let is_returned = |outcome: &Ended| matches!(outcome.outcome, Outcome::Returned);
        self.completed.is_empty() && !self.others.is_empty() && self.others.iter().all(is_returned)
    }

    /// Whether one of its jobs met a rate limit.
    pub(crate) fn is_limited(&self) -> bool {
        let is_limited = |outcome: &Ended| matches!(outcome.outcome, Outcome::RateLimited);
        self.others.iter().any(is_limited)
    }

    /// Jobs that are taken back: nobody has started them.
    pub(crate) fn returning(handles: impl IntoIterator<Item = u32>, now_ms: u64) -> Self {
        let returned = |handle| Ended {
            handle,
            outcome: Outcome::Returned,
        };
        Self {
            now_ms,
            others: handles.into_iter().map(returned).collect(),
            ..Self::default()
        }
    }
}

/// A job that completed.
#[derive(Debug, Clone, Copy)]
pub struct Completed {
    /// Its handle.
    pub handle: u32,
    /// Where its result lies in the report's text; `None`: undefined.
    pub result: Option<(u32, u32)>,
}

impl Completed {
    /// Whether its result lies apart (`lua/jobs/large.lua`).
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.bytes() > MAX_RESULT
    }

    /// Its result, in its report's text; empty: undefined.
    #[inline]
    pub(crate) fn result_in<'a>(&self, text: &'a str) -> &'a str {
        self.result
            .and_then(|(from, to)| text.get(from as usize..to as usize))
            .unwrap_or("")
    }

    /// Of its result.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.result.map_or(0, |(from, to)| to.saturating_sub(from) as usize)
    }
}

/// A job that ended another way.
#[derive(Debug)]
pub struct Ended {
    /// Its handle.
    pub handle: u32,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a job ended, if it did not complete.
#[derive(Debug)]
pub enum Outcome {
    /// It threw.
    Failed {
        /// Message of the error.
        reason: Option<Arc<str>>,
        /// All its stack traces so far, JSON array of texts.
        stacktrace: Option<Arc<str>>,
        /// No further tries.
        unrecoverable: bool,
        /// Pause before the next try, ms, by a strategy of the user's; -1 = no further tries.
        delay_ms: Option<f64>,
    },
    /// The handler moved it itself.
    Moved,
    /// It never started: back to the head of the waiting list.
    Returned,
    /// It started, and met a rate limit or had no more time: back to the head of the waiting list. The start counts, the try does not.
    RateLimited,
}
