//! What a worker tells JavaScript.

use chasquimq::worker::{CancelledJob, Failure, FailureState, Message, Taking};
use napi::bindgen_prelude::{Float64Array, FnArgs};
use napi_derive::napi;

use super::batch::{to_batch, NativeBatch};
use crate::error::{Happened, NativeError};

/// A plain job that became active alone: its handle, its offer, when it became active, its claim, its number, UTF-16 units of its name, its creation
/// time, its name and data, its options.
pub type OneJob = FnArgs<(u32, u32, f64, f64, f64, u32, f64, String, String)>;

/// What a worker tells.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct WorkerMessage {
    /// Jobs to run.
    pub jobs: Option<NativeBatch>,
    /// Every report up to this one is recorded.
    pub flushed: Option<f64>,
    /// Outcomes that were refused.
    pub rejected: Option<Vec<NativeRejected>>,
    /// What became of failed tries. Four numbers a job: handle, state (0 failed, 1 delayed, 2 waiting), tries that ended, pause before the next
    /// try in ms.
    pub failures: Option<Float64Array>,
    /// `finishedOn` of what ended.
    pub finished_on: Option<f64>,
    /// Nothing was left.
    pub drained: Option<bool>,
    /// Ids brought back.
    pub stalled: Option<Vec<String>>,
    /// Call `tick`.
    pub clock: Option<bool>,
    /// Call `heard`.
    pub asks_for_life: Option<bool>,
    /// The lease was not renewed in time.
    pub lease_lost: Option<bool>,
    /// Ids of jobs that are this worker's no more.
    pub locks_lost: Option<Vec<String>>,
    /// Jobs that somebody cancelled.
    pub cancelled: Option<Vec<NativeCancelled>>,
    /// Something failed that is not the connection.
    pub error: Option<NativeError>,
    /// Connecting failed.
    pub connection_error: Option<NativeError>,
    /// It is not open any more, or still not.
    pub closed: Option<bool>,
    /// A server that runs full deletes jobs, by this policy.
    pub eviction: Option<String>,
    /// The server has somebody else's library under this name, which is ours.
    pub foreign_library: Option<String>,
}

/// A job that is held and is to end.
#[napi(object)]
pub struct NativeCancelled {
    /// Its id.
    pub id: String,
    /// Under which claim it is held; not of one that was taken manually.
    pub claim: Option<f64>,
    /// When one that was taken manually started, epoch ms.
    pub started: Option<f64>,
    /// Why; may be empty.
    pub reason: String,
}

impl From<CancelledJob> for NativeCancelled {
    fn from(job: CancelledJob) -> Self {
        let (claim, started) = match job.taking {
            Taking::Claim(claim) => (Some(claim as f64), None),
            Taking::Manual(started_ms) => (None, Some(started_ms as f64)),
        };
        Self {
            id: job.id,
            claim,
            started,
            reason: job.reason,
        }
    }
}

/// A refused outcome.
#[napi(object)]
pub struct NativeRejected {
    /// The job.
    pub handle: u32,
    /// Why.
    pub error: NativeError,
}

/// A message as JavaScript reads it.
pub fn to_message(message: Message) -> WorkerMessage {
    let finished_on = message.finished_on as f64;
    let happened = message.connection.map(Happened::from).unwrap_or_default();
    WorkerMessage {
        jobs: message.jobs.map(to_batch),
        flushed: message.flushed.map(|number| number as f64),
        rejected: some(message.rejected.into_iter().map(|rejected| NativeRejected {
            handle: rejected.handle,
            error: NativeError::from(&rejected.error),
        })),
        failures: (!message.failures.is_empty()).then(|| to_failures(&message.failures)),
        finished_on: message.flushed.map(|_| finished_on),
        drained: message.drained.then_some(true),
        stalled: some(message.stalled.into_iter()),
        clock: message.clock.then_some(true),
        asks_for_life: message.asks_for_life.then_some(true),
        lease_lost: message.lease_lost.then_some(true),
        locks_lost: some(message.locks_lost.into_iter()),
        cancelled: some(message.cancelled.into_iter().map(NativeCancelled::from)),
        error: message.error.as_ref().map(NativeError::from),
        connection_error: happened.failure,
        closed: happened.closed,
        eviction: happened.eviction,
        foreign_library: happened.foreign_library,
    }
}

fn to_failures(failures: &[Failure]) -> Float64Array {
    let mut layout = Vec::with_capacity(failures.len() * 4);
    for failure in failures {
        let (state, delay_ms) = match failure.state {
            FailureState::Failed => (0.0, 0.0),
            FailureState::Delayed(ms) => (1.0, ms as f64),
            FailureState::Waiting => (2.0, 0.0),
        };
        layout.extend([
            f64::from(failure.handle),
            state,
            f64::from(failure.attempts_made),
            delay_ms,
        ]);
    }
    Float64Array::new(layout)
}

fn some<T>(values: impl ExactSizeIterator<Item = T>) -> Option<Vec<T>> {
    (values.len() > 0).then(|| values.collect())
}
