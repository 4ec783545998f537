//! What a worker tells, and whom.

use std::{fmt, sync::Arc};

use chasquimq::{worker::FailureState, Error, WorkerOptions};

/// What happens in a worker, told when it is recorded in Redis.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// A job completed.
    Completed {
        /// Its id.
        id: String,
    },
    /// A try of a job failed.
    Failed {
        /// The job's id.
        id: String,
        /// Message of the error.
        reason: String,
        /// Where the job went.
        state: FailureState,
        /// Tries that ended.
        attempts_made: u32,
    },
    /// A job ended, but it was no longer this worker's: its lease had run out, or the job was removed.
    Rejected {
        /// The job's id.
        id: String,
        /// Why.
        error: Error,
    },
    /// Nothing was left to fetch.
    Drained,
    /// Jobs were brought back from workers that are gone.
    Stalled {
        /// Their ids.
        ids: Vec<String>,
    },
    /// The lease could not be renewed in time: jobs may run elsewhere, too.
    LeaseLost,
    /// Jobs that run are this worker's no more: somebody removed or moved them.
    LocksLost {
        /// Their ids.
        ids: Vec<String>,
    },
    /// Something failed that concerns no job. The worker goes on.
    Error(Error),
}

/// Receives a worker's events. It runs between jobs, so it should be short.
pub type OnEvent = Arc<dyn Fn(WorkerEvent) + Send + Sync>;

/// Settings of a typed worker: those of the engine's worker, and who hears its events.
#[derive(Clone, Default)]
pub struct TypedWorkerOptions {
    /// The engine's.
    pub worker: WorkerOptions,
    /// Hears what happens; nobody by default.
    pub on_event: Option<OnEvent>,
}

impl TypedWorkerOptions {
    /// Sets who hears what happens.
    pub fn on_event(self, on_event: impl Fn(WorkerEvent) + Send + Sync + 'static) -> Self {
        Self {
            on_event: Some(Arc::new(on_event)),
            ..self
        }
    }
}

impl From<WorkerOptions> for TypedWorkerOptions {
    fn from(worker: WorkerOptions) -> Self {
        Self { worker, on_event: None }
    }
}

impl fmt::Debug for TypedWorkerOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TypedWorkerOptions")
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}
