//! What a worker's loop looks after from time to time: its lease, its locks, and jobs that nobody runs.

use std::time::Instant;

use crate::lost::Scan;

/// When each is next; `None`: not at all.
#[derive(Default)]
pub(crate) struct Rounds {
    /// The lease is renewed.
    pub(crate) renewal: Option<Instant>,
    /// Jobs that were taken manually are to be told when they are cancelled.
    pub(crate) attends: bool,
    /// What the last renewal read of cancelled jobs, and the next one lets go.
    pub(crate) read_cancels: Vec<String>,
    /// It is looked whether the jobs that are held are this worker's still.
    pub(crate) check: Option<Instant>,
    /// The last claim of those that were held at the last such look.
    pub(crate) checked_claim: u64,
    /// A scan for jobs that nobody runs begins.
    pub(crate) next_scan: Option<Instant>,
    /// The scan under way, a step of it a turn.
    pub(crate) scan: Option<Scan>,
    /// What was measured of jobs is told.
    pub(crate) note: Option<Instant>,
}
