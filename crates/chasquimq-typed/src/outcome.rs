//! How a try ends: what a handler may answer, and what the engine is told.

use std::{error::Error as StdError, fmt, time::Duration};

use serde::Serialize;

use crate::json::to_json;

/// Why a handler did not complete its job. Any [`std::error::Error`] becomes [`JobError::Failed`] with `?`.
///
/// ```
/// # use chasquimq_typed::JobError;
/// fn charge(amount: &str) -> Result<u32, JobError> {
///     let amount: u32 = amount.parse()?; // tried again as the job's options say
///     if amount == 0 {
///         return Err(JobError::unrecoverable("nothing to charge")); // never tried again
///     }
///     Ok(amount)
/// }
/// # assert!(matches!(charge("x"), Err(JobError::Failed { .. })));
/// # assert!(matches!(charge("0"), Err(JobError::Unrecoverable { .. })));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum JobError {
    /// The try failed. The job is tried again while it has tries left.
    Failed {
        /// Message, kept as the job's `failedReason`.
        reason: String,
        /// What is kept as this try's stack trace.
        trace: String,
        /// Pause before the next try, instead of the one that the job's options ask for.
        retry_after: Option<Duration>,
    },
    /// The job failed for good, whatever tries it has left. Source: BullMQ `UnrecoverableError`.
    Unrecoverable {
        /// Message, kept as the job's `failedReason`.
        reason: String,
        /// What is kept as this try's stack trace.
        trace: String,
    },
    /// Nothing failed: the job waits, and starts from the beginning later. No try is counted.
    /// Source: BullMQ `job.moveToDelayed` with `DelayedError`.
    Delayed {
        /// Time until it may start, from now.
        pause: Duration,
    },
    /// Nothing failed: somebody else's rate limit was met. The job goes back to the head of the waiting list, and starts again after the pause, in
    /// which this worker starts no jobs, nor does any worker that has a limiter, or any of a queue that has a rate limit. No try is
    /// counted. Source: BullMQ `queue.rateLimit` with `RateLimitError`.
    RateLimited {
        /// Time until jobs may start, from now; at least a millisecond.
        pause: Duration,
    },
}

impl JobError {
    /// A failed try with this message, for errors that are no [`std::error::Error`].
    pub fn failed(reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        JobError::Failed {
            trace: reason.clone(),
            reason,
            retry_after: None,
        }
    }

    /// A failure for good, with this message.
    pub fn unrecoverable(reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        JobError::Unrecoverable {
            trace: reason.clone(),
            reason,
        }
    }

    /// Not now: the job starts again after this pause.
    pub fn delayed(pause: Duration) -> Self {
        JobError::Delayed { pause }
    }

    /// Nobody now: jobs start again after this pause.
    pub fn rate_limited(pause: Duration) -> Self {
        JobError::RateLimited { pause }
    }

    /// Sets the pause before the next try of a failed one.
    pub fn retry_after(mut self, pause: Duration) -> Self {
        if let JobError::Failed { retry_after, .. } = &mut self {
            *retry_after = Some(pause);
        }
        self
    }
}

impl<E: StdError> From<E> for JobError {
    fn from(error: E) -> Self {
        let mut trace = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            trace.push_str(&format!("\ncaused by: {error}"));
            cause = error.source();
        }
        JobError::Failed {
            reason: error.to_string(),
            trace,
            retry_after: None,
        }
    }
}

/// How a delivered job ended: its result (JSON text), or why it did not complete. What is delayed or met a rate limit has been moved, or its
/// limit set.
pub(crate) type Outcome = Result<String, JobError>;

/// A handler returned this.
pub(crate) fn completed(result: &impl Serialize) -> Outcome {
    Ok(to_json("result", result)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("mail not sent")]
    struct NotSent(#[source] std::fmt::Error);

    #[test]
    fn an_error_leaves_its_causes_in_the_trace() {
        let JobError::Failed { reason, trace, .. } = JobError::from(NotSent(std::fmt::Error)) else {
            panic!("not a failed try");
        };
        assert_eq!(reason, "mail not sent");
        assert_eq!(trace, format!("mail not sent\ncaused by: {}", std::fmt::Error));
    }

    #[test]
    fn a_result_without_json_form_is_a_failed_try() {
        let keyed_by_pairs = std::collections::HashMap::from([((1, 2), 3)]);
        assert!(matches!(completed(&keyed_by_pairs), Err(JobError::Failed { .. })));
        assert_eq!(completed(&()), Ok("null".into()));
    }

    #[test]
    fn only_a_failed_try_takes_a_pause() {
        let pause = Duration::from_secs(3);
        let failed = JobError::failed("no").retry_after(pause);
        assert!(matches!(failed, JobError::Failed { retry_after: Some(set), .. } if set == pause));
        let never = JobError::unrecoverable("no");
        assert_eq!(never.clone().retry_after(pause), never);
    }
}
