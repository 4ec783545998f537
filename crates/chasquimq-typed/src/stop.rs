//! Jobs that are to end while their handlers run: handlers that ask are told, and their tries end accordingly. Jobs that nobody stops leave nothing here.

use std::{
    collections::HashMap,
    error::Error as StdError,
    fmt,
    future::Future,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use crate::outcome::{JobError, Outcome};

/// Why a handler is to end ([`TypedJob::cancelled`](crate::TypedJob::cancelled)). As an error it fails the try with this text: `Err(stop)?`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Somebody has cancelled the job. If the handler fails, the job fails for good; if it returns, the job completes. Source: none, an extension.
    Cancelled {
        /// Why; may be empty.
        reason: String,
    },
    /// The time of the try is over: it fails, whatever the handler returns. Source: none, an extension.
    TimedOut {
        /// Name of the job.
        name: String,
        /// The time that the try had.
        timeout: Duration,
    },
}

impl fmt::Display for Stop {
    // as JobCancelledError and JobTimeoutError word it
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Cancelled { reason } if reason.is_empty() => write!(formatter, "The job was cancelled"),
            Stop::Cancelled { reason } => write!(formatter, "The job was cancelled: {reason}"),
            Stop::TimedOut { name, timeout } => {
                write!(formatter, "Job {name} took longer than {} ms", timeout.as_millis())
            }
        }
    }
}

impl StdError for Stop {}

/// What jobs were told, by their handles.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    told: Mutex<HashMap<u32, Told>>,
    changed: Notify,
}

/// What one job was told.
#[derive(Debug)]
pub(crate) struct Told {
    first: Stop,
    is_cancelled: bool,
    late: Option<Late>,
}

#[derive(Debug)]
struct Late {
    stop: Stop,
    is_final: bool,
}

/// How long a try may take.
#[derive(Debug)]
pub(crate) struct TimeLimit {
    pub(crate) time: Duration,
    /// No try follows one that took longer.
    pub(crate) is_final: bool,
}

impl Stops {
    fn told(&self) -> MutexGuard<'_, HashMap<u32, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, handle: u32, stop: Stop, note: impl FnOnce(&mut Told)) {
        note(self.told().entry(handle).or_insert(Told {
            first: stop,
            is_cancelled: false,
            late: None,
        }));
        self.changed.notify_waiters();
    }

    /// Somebody has cancelled the job.
    pub(crate) fn cancel(&self, handle: u32, reason: String) {
        self.tell(handle, Stop::Cancelled { reason }, |told| told.is_cancelled = true);
    }

    /// What the job was told first.
    pub(crate) fn of(&self, handle: u32) -> Option<Stop> {
        self.told().get(&handle).map(|told| told.first.clone())
    }

    /// Waits until the job is told something.
    pub(crate) async fn wait(&self, handle: u32) -> Stop {
        loop {
            let changed = self.changed.notified();
            if let Some(stop) = self.of(handle) {
                return stop;
            }
            changed.await;
        }
    }

    /// Runs a handler to its end, and tells its job when the time is over.
    pub(crate) async fn within<F: Future>(&self, handle: u32, name: String, limit: TimeLimit, run: F) -> F::Output {
        let TimeLimit { time, is_final } = limit;
        let mut run = pin!(run);
        if let Ok(ended) = tokio::time::timeout(time, run.as_mut()).await {
            return ended;
        }
        let stop = Stop::TimedOut { name, timeout: time };
        self.tell(handle, stop.clone(), |told| told.late = Some(Late { stop, is_final }));
        run.await
    }

    /// The job has left the worker, or is about to.
    pub(crate) fn take(&self, handle: u32) -> Option<Told> {
        self.told().remove(&handle)
    }
}

impl Told {
    /// The error of a job that has not started.
    pub(crate) fn into_error(self) -> JobError {
        JobError::unrecoverable(self.first)
    }

    /// What becomes of the try. What is to be moved, or has failed for good, is left as it is.
    pub(crate) fn judge(self, outcome: Outcome) -> Outcome {
        let outcome = match (self.late, outcome) {
            (Some(Late { stop, is_final: false }), Ok(_) | Err(JobError::Failed { .. })) => Err(JobError::failed(stop)),
            (Some(Late { stop, .. }), Ok(_) | Err(JobError::Failed { .. })) => Err(JobError::unrecoverable(stop)),
            (_, outcome) => outcome,
        };
        match outcome {
            Err(JobError::Failed { reason, trace, .. }) if self.is_cancelled => {
                Err(JobError::Unrecoverable { reason, trace })
            }
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_millis(20);

    fn late(is_final: bool) -> Stops {
        let stops = Stops::default();
        let stop = Stop::TimedOut {
            name: "mail".into(),
            timeout: TIME,
        };
        stops.tell(1, stop.clone(), |told| told.late = Some(Late { stop, is_final }));
        stops
    }

    fn judged(stops: &Stops, outcome: Outcome) -> String {
        format!("{:?}", stops.take(1).expect("told").judge(outcome))
    }

    #[test]
    fn what_is_late_fails_unless_it_has_failed_for_good_or_goes_back() {
        let text = "Job mail took longer than 20 ms";
        for outcome in [Ok("1".into()), Err(JobError::failed("no"))] {
            let failed: Outcome = Err(JobError::failed(text));
            assert_eq!(judged(&late(false), outcome.clone()), format!("{failed:?}"));
            let failed: Outcome = Err(JobError::unrecoverable(text));
            assert_eq!(judged(&late(true), outcome), format!("{failed:?}"));
        }
        for why in [
            JobError::unrecoverable("no"),
            JobError::delayed(TIME),
            JobError::rate_limited(TIME),
        ] {
            let outcome: Outcome = Err(why);
            assert_eq!(judged(&late(false), outcome.clone()), format!("{outcome:?}"));
        }
    }

    #[test]
    fn what_is_cancelled_fails_for_good_or_completes_whenever_it_was() {
        let cancelled = || {
            let stops = Stops::default();
            stops.cancel(1, "why".into());
            stops
        };
        let outcome: Outcome = Err(JobError::unrecoverable("no"));
        assert_eq!(
            judged(&cancelled(), Err(JobError::failed("no"))),
            format!("{outcome:?}")
        );
        assert_eq!(judged(&cancelled(), Ok("1".into())), r#"Ok("1")"#);
        let both = late(false);
        both.cancel(1, "why".into());
        assert!(matches!(both.of(1), Some(Stop::TimedOut { .. })));
        assert!(judged(&both, Ok("1".into())).contains("Unrecoverable"));
        let unstarted = cancelled().take(1).expect("told").into_error();
        assert_eq!(unstarted, JobError::unrecoverable("The job was cancelled: why"));
    }
}
