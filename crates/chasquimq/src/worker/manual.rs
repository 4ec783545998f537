//! Manual jobs: one a call, under a token of the caller's own, with a lease that only the caller renews.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{
    idle::wait_task::{marker_wait, wake_next, REFUSED_PAUSE},
    options::{pack_limits, Defaults, GroupRules, RateLimit},
    record::{
        pack,
        packed_outcomes::{Failure, PackedOutcomes},
        report::{Completed, Ended, Outcome, Report},
    },
    step_request::GRACE,
    take::in_flight::InFlight,
};
use crate::{
    error::{Error, Result},
    job::{keep::Keep, msgpack::Packer, options::JobOptions, read_job, whole, Job},
    keys::Keys,
    queue::Queue,
    redis::{
        call::{
            library::{args, Arg, EXTEND_LOCKS, STEP_JOB},
            reply::Reply,
        },
        connection::Connection,
    },
};

/// What is waited for: a job may have come.
const MARKER: &str = "wake";

/// One step of somebody who works manually: it ends a job, or takes the next one, or both.
#[derive(Debug)]
pub struct ManualStep {
    /// The caller's clock, epoch ms.
    pub now_ms: u64,
    /// Holds the job that ends, and the one that is taken. `0` holds nothing: it ends anybody's, and what it takes has no lease.
    pub token: String,
    /// Take the next job. Not done when the job that ends is tried again at once.
    pub fetch: bool,
    /// Id of the worker that is told when the job taken is cancelled ([`super::Message::cancelled`]); empty: nobody is.
    pub worker: String,
    /// Shown as `processedBy` of the job taken; may be empty.
    pub worker_name: String,
    /// How long the job taken is held.
    pub lock_duration: Duration,
    /// The worker's limiter.
    pub limiter: Option<RateLimit>,
    /// What the worker heeds of groups.
    pub group_rules: GroupRules,
    /// The job that ends.
    pub ended: Option<ManualEnd>,
}

/// How a job that was taken manually ended.
#[derive(Debug)]
pub struct ManualEnd {
    /// Its id.
    pub id: String,
    /// Its options.
    pub options: JobOptions,
    /// Tries that ended before.
    pub attempts_made: u32,
    /// Times it became active.
    pub attempts_started: u32,
    /// A job that was started so often is not tried again.
    pub max_started_attempts: Option<u32>,
    /// Minutes for which its end is counted; 0 = not.
    pub metrics_minutes: u32,
    /// Retention, if its options do not say.
    pub keep: Keep,
    /// `Ok`: it completed with this result (JSON text).
    pub outcome: std::result::Result<Option<String>, Outcome>,
}

/// What a manual step did.
#[derive(Debug)]
pub struct ManualStepped {
    /// The job taken.
    pub job: Option<Box<Job>>,
    /// Jobs may wait, and must not start now.
    pub gated: bool,
    /// No job may start for so long.
    pub limited_ms: u64,
    /// When the next job is due, epoch ms, if none was taken.
    pub next_due_ms: Option<u64>,
    /// What became of a failed try.
    pub failure: Option<Failure>,
}

impl Queue {
    /// Ends a job, or takes one manually, or both, in one step that is carried out once.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::LockMissing`], [`Error::LockMismatch`], [`Error::NotInState`] for the job that ends; nothing
    /// is taken then.
    pub async fn step_manually(&self, step: ManualStep) -> Result<ManualStepped> {
        let id = step.ended.as_ref().map_or(String::new(), |ended| ended.id.clone());
        let mut outcomes = match step.ended {
            Some(ended) => pack(ended, step.now_ms),
            None => PackedOutcomes::none(step.now_ms),
        };
        let failure = outcomes.failures.pop();
        let command = failure
            .as_ref()
            .map_or("moveToFinished", |failure| failure.state.command());
        let mut limits = Packer::default();
        pack_limits(&mut limits, step.limiter, step.group_rules);
        let mut args = vec![
            Arg::from(step.token.as_str()),
            Arg::Int(step.lock_duration.as_millis().max(1) as i64),
            Arg::from(step.worker.as_str()),
            Arg::from(step.worker_name.as_str()),
            Arg::from(step.fetch && command != "retryJob"),
            Arg::from(outcomes.blob.as_slice()),
            Arg::from(outcomes.keeps.as_slice()),
            Arg::from(limits.0.as_slice()),
        ];
        args.extend(outcomes.large());
        let reply = self.run_once(&STEP_JOB, step.now_ms, &args).await?;
        let mut reply = Reply::new("the answer to step_job", reply)?;
        let (code, gated, due_ms, limited_ms) = (reply.int()?, reply.int()? == 1, reply.int()?, reply.int()?);
        if code < 0 {
            return Err(Error::from_code(code, &id, "active", command));
        }
        let taken = if reply.is_empty() { None } else { read_job(&mut reply)? };
        let taken = whole::complete_all(self.connection(), self.keys(), Vec::from_iter(taken)).await?;
        Ok(ManualStepped {
            job: taken.into_iter().next().map(Box::new),
            gated,
            limited_ms: limited_ms.max(0) as u64,
            next_due_ms: (due_ms >= 0).then_some(due_ms as u64),
            failure,
        })
    }

    /// Makes the leases behind tokens last `duration_ms` from now: pairs of id and token. Gives the ids of jobs that the tokens do not
    /// hold.
    /// # Errors
    /// As [`crate::Connection::send`].
    pub async fn extend_locks(&self, locks: &[(String, String)], duration_ms: u64) -> Result<Vec<String>> {
        extend_locks(self.connection(), self.keys(), locks, duration_ms).await
    }
}

/// As [`Queue::extend_locks`].
pub(crate) async fn extend_locks(
    connection: &Connection,
    keys: &Keys,
    locks: &[(String, String)],
    duration_ms: u64,
) -> Result<Vec<String>> {
    let mut packed = Packer::default();
    packed.array(locks.len() * 2);
    for (id, token) in locks {
        packed.str(id).str(token);
    }
    let args = args![duration_ms, &packed];
    EXTEND_LOCKS.ask(connection, &keys.base, &args).await?.texts()
}

/// The one outcome, as a worker that holds the job as a record would report it.
fn pack(ended: ManualEnd, now_ms: u64) -> PackedOutcomes {
    let defaults = Defaults {
        remove_on_complete: ended.keep,
        remove_on_fail: ended.keep,
        max_started_attempts: ended.max_started_attempts,
        metrics_minutes: ended.metrics_minutes,
    };
    let mut in_flight = InFlight::of_record(ended.id, ended.attempts_made, ended.attempts_started, ended.options);
    let mut report = Report {
        now_ms,
        ..Report::default()
    };
    match ended.outcome {
        Ok(result) => {
            report.completed.push(Completed {
                handle: 0,
                result: result.as_ref().map(|text| (0, text.len() as u32)),
            });
            report.text = Arc::new(result.unwrap_or_default());
        }
        Err(outcome) => report.others.push(Ended { handle: 0, outcome }),
    }
    pack::pack(vec![report], now_ms, &mut in_flight, &defaults)
}

/// Waits for jobs to be taken manually, on a connection of its own, which is made when it is first needed.
pub(crate) struct ManualWaiter {
    waiting: Connection,
    commands: Connection,
    keys: Keys,
    // one wait at a time: the others come after it, or run out of time
    turn: tokio::sync::Mutex<()>,
    stops: watch::Sender<u64>,
}

impl ManualWaiter {
    pub(crate) fn new(waiting: Connection, commands: Connection, keys: &Keys) -> Self {
        Self {
            waiting,
            commands,
            keys: keys.clone(),
            turn: tokio::sync::Mutex::default(),
            stops: watch::Sender::new(0),
        }
    }

    /// False when it was stopped.
    pub(crate) async fn wait(&self, time: Duration) -> bool {
        let mut stops = self.stops.subscribe();
        tokio::select! {
            biased;
            _ = stops.changed() => {
                self.waiting.discard_connection();
                // it may have been popped for this wait
                self.pass_marker_on().await;
                false
            }
            waited = tokio::time::timeout(time + GRACE, self.wait_in_turn(time)) => {
                if waited.is_err() {
                    self.waiting.drop_connection();
                }
                true
            }
        }
    }

    async fn wait_in_turn(&self, time: Duration) {
        let until = Instant::now() + time;
        let Ok(_turn) = tokio::time::timeout(time, self.turn.lock()).await else {
            return;
        };
        let (marker, left) = (self.keys.key(MARKER), until.saturating_duration_since(Instant::now()));
        let waited = self.waiting.wait_once(left, |time| marker_wait(&marker, time));
        if waited.await.is_err() {
            // a server that refuses is not asked without end
            tokio::time::sleep(REFUSED_PAUSE.min(left)).await;
        }
    }

    /// Ends every wait under way.
    pub(crate) fn stop(&self) {
        self.stops.send_modify(|stops| *stops += 1);
    }

    pub(crate) fn close(&self) {
        self.stop();
        self.waiting.close();
    }

    /// Somebody who waits is told that jobs may have come.
    pub(crate) async fn pass_marker_on(&self) {
        // without a connection there is nobody who waits
        if self.commands.is_connected() {
            let _ = wake_next(&self.commands, &self.keys.base, MARKER, "").await;
        }
    }
}
