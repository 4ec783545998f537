//! Manual jobs: one a call. See `src/job/manual-step.ts`.

use chasquimq::{
    millis,
    retry::Tries,
    worker::{Failure, FailureState, ManualEnd, ManualStep, ManualStepped, Outcome},
    Error, JobOptions, Keep, RateLimit,
};
use napi_derive::napi;

use super::{commands::commands, job::NativeJob, NativeQueue};
use crate::worker::options::{group_rules, to_duration, NativeRateLimit};

/// A manual step.
#[napi(object)]
pub struct NativeManualStep {
    /// The caller's clock.
    pub now: f64,
    /// Holds the jobs.
    pub token: String,
    /// Take the next job.
    pub fetch: bool,
    /// Id of the worker that is told when it is cancelled.
    pub worker: Option<String>,
    /// Shown as `processedBy`.
    pub worker_name: Option<String>,
    /// Lease of the job taken, ms.
    pub lock_duration: f64,
    /// The worker's limiter.
    pub limiter: Option<NativeRateLimit>,
    /// Jobs of one group at once.
    pub group_concurrency: Option<f64>,
    /// Rate limit of each group.
    pub group_limit: Option<NativeRateLimit>,
    /// Jobs without a group have turns, too.
    pub groups_fair: Option<bool>,
    /// The job that ends.
    pub ended: Option<NativeManualEnd>,
}

/// How a job ended.
#[napi(object)]
pub struct NativeManualEnd {
    /// The job.
    pub id: String,
    /// Its options, JSON text.
    pub opts: String,
    /// Tries that ended before.
    pub attempts_made: u32,
    /// Times it became active.
    pub attempts_started: u32,
    /// Starts a job may have.
    pub max_started_attempts: Option<u32>,
    /// Minutes for which its end is counted.
    pub metrics_minutes: Option<u32>,
    /// JSON of the worker's retention.
    pub keep: Option<String>,
    /// Its result, JSON text, if it completed with one.
    pub result: Option<String>,
    /// How it failed, if it did not complete.
    pub failed: Option<NativeFailedTry>,
}

/// A try that failed.
#[napi(object)]
pub struct NativeFailedTry {
    /// Message of the error.
    pub reason: Option<String>,
    /// JSON array of texts.
    pub stacktrace: String,
    /// No further tries.
    pub unrecoverable: bool,
    /// Pause by a strategy of the user's, ms.
    pub delay: Option<f64>,
}

/// What became of a failed try.
#[napi(object)]
pub struct NativeFailure {
    /// Where the job went.
    #[napi(ts_type = "'failed' | 'delayed' | 'waiting'")]
    pub state: String,
    /// Tries that ended.
    pub attempts_made: u32,
    /// Pause before the next try, ms.
    pub delay: Option<f64>,
}

/// What a manual step did.
#[napi(object)]
pub struct NativeManualStepped {
    /// The job taken.
    pub job: Option<NativeJob>,
    /// Jobs may wait, and must not start now.
    pub gated: bool,
    /// No job may start for so long, ms.
    pub limited: f64,
    /// When the next job is due.
    pub next_due: Option<f64>,
    /// What became of a failed try.
    pub failure: Option<NativeFailure>,
}

/// A job's lock.
#[napi(object)]
pub struct NativeLock {
    /// The job.
    pub id: String,
    /// Who holds it.
    pub token: String,
}

/// Whether another try of a job may follow one that ends, `attempts_made` counting it, unless its error or a strategy of the user's says no.
#[napi]
#[cfg_attr(test, allow(dead_code, reason = "only JavaScript calls it"))]
pub fn may_try_again(
    attempts: f64,
    attempts_made: u32,
    attempts_started: u32,
    max_started_attempts: Option<u32>,
) -> bool {
    let tries = Tries {
        made: attempts_made,
        started: attempts_started,
        most_starts: max_started_attempts.unwrap_or(0),
    };
    tries.leave_another(attempts.ceil() as u32)
}

commands! {
    /// Ends a job, or takes one manually, or both.
    async fn step_manually(queue, step: NativeManualStep) -> NativeManualStepped {
        Ok(to_stepped(queue.step_manually(to_step(step)?).await?))
    }

    /// Extends locks; gives the ids of jobs whose tokens do not hold them.
    async fn extend_locks(queue, locks: Vec<NativeLock>, duration: f64) -> Vec<String> {
        let locks: Vec<_> = locks.into_iter().map(|lock| (lock.id, lock.token)).collect();
        queue.extend_locks(&locks, millis(duration)).await
    }
}

fn to_step(step: NativeManualStep) -> std::result::Result<ManualStep, Error> {
    Ok(ManualStep {
        now_ms: step.now as u64,
        token: step.token,
        fetch: step.fetch,
        worker: step.worker.unwrap_or_default(),
        worker_name: step.worker_name.unwrap_or_default(),
        lock_duration: to_duration(step.lock_duration),
        limiter: step.limiter.map(RateLimit::from),
        group_rules: group_rules(step.group_concurrency, step.group_limit, step.groups_fair, None),
        ended: step.ended.map(to_end).transpose()?,
    })
}

fn to_end(ended: NativeManualEnd) -> std::result::Result<ManualEnd, Error> {
    let options = JobOptions::parse(&ended.opts)?;
    Ok(ManualEnd {
        id: ended.id,
        options,
        attempts_made: ended.attempts_made,
        attempts_started: ended.attempts_started,
        max_started_attempts: ended.max_started_attempts,
        metrics_minutes: ended.metrics_minutes.unwrap_or(0),
        keep: ended.keep.map_or(Keep::ALL, |text| Keep::from_text(&text)),
        outcome: ended.failed.map_or(Ok(ended.result), |failed| Err(to_outcome(failed))),
    })
}

fn to_stepped(stepped: ManualStepped) -> NativeManualStepped {
    NativeManualStepped {
        job: stepped.job.map(|job| NativeJob::from(*job)),
        gated: stepped.gated,
        limited: stepped.limited_ms as f64,
        next_due: stepped.next_due_ms.map(|ms| ms as f64),
        failure: stepped.failure.map(to_failure),
    }
}

fn to_outcome(failed: NativeFailedTry) -> Outcome {
    Outcome::Failed {
        reason: failed.reason.map(Into::into),
        stacktrace: Some(failed.stacktrace.into()),
        unrecoverable: failed.unrecoverable,
        delay_ms: failed.delay,
    }
}

fn to_failure(failure: Failure) -> NativeFailure {
    let (state, delay) = match failure.state {
        FailureState::Failed => ("failed", None),
        FailureState::Delayed(ms) => ("delayed", Some(ms as f64)),
        FailureState::Waiting => ("waiting", None),
    };
    NativeFailure {
        state: state.to_owned(),
        attempts_made: failure.attempts_made,
        delay,
    }
}
