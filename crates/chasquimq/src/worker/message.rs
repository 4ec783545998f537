//! What a worker tells whoever runs its jobs, and what its loop is told.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{
    client_clock::Reading,
    idle::{short_way::Told, standby::Standby},
    options::RateLimit,
    record::{
        packed_outcomes::{Failure, Rejected},
        report::Report,
    },
    take::batch::Batch,
};
use crate::{error::Error, redis::session::ConnectionEvent};

/// What the worker tells whoever runs its jobs. Absent = nothing to tell.
#[derive(Debug, Default)]
pub struct Message {
    /// Jobs that are active now, to be run: each once it is drawn ([`super::Worker::draw`]).
    pub jobs: Option<Batch>,
    /// Every report up to this one is recorded.
    pub flushed: Option<u64>,
    /// Outcomes of those reports that were refused.
    pub rejected: Vec<Rejected>,
    /// What became of each failed try in those reports, in order.
    pub failures: Vec<Failure>,
    /// `finishedOn` of everything that ended in those reports, epoch ms.
    pub finished_on: u64,
    /// Nothing was left to fetch.
    pub drained: bool,
    /// Ids that this worker's scan brought back.
    pub stalled: Vec<String>,
    /// The caller's clock is wanted ([`super::Worker::tick`]).
    pub clock: bool,
    /// Whether anybody hears is asked: [`super::Worker::heard`] is the answer.
    pub asks_for_life: bool,
    /// The lease could not be renewed in time.
    pub lease_lost: bool,
    /// Jobs of this worker that it holds no more: somebody else removed or moved them.
    pub locks_lost: Vec<String>,
    /// Jobs that it holds and that somebody cancelled.
    pub cancelled: Vec<CancelledJob>,
    /// The worker hears of work by a connection that an event loop may watch from now on ([`Standby::watch`]).
    pub standby: Option<Standby>,
    /// Something failed that is not the connection.
    pub error: Option<Error>,
    /// The connection failed or broke.
    pub connection: Option<ConnectionEvent>,
}

/// A job that a worker holds, and that is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelledJob {
    /// Its id.
    pub id: String,
    /// By which taking it is held: a later try of it is another matter.
    pub taking: Taking,
    /// Why; may be empty.
    pub reason: String,
}

/// What tells a taking of a job from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taking {
    /// A step of the worker's, by its claim.
    Claim(u64),
    /// A manual step, by the time at which the job started, epoch ms.
    Manual(u64),
}

impl CancelledJob {
    /// As `lua/lists/cancel.lua` marks it.
    pub(crate) fn read(mark: &str, reason: String) -> Option<Self> {
        let (taking, id) = mark.split_once(':')?;
        let taking = match taking.strip_prefix('m') {
            Some(started_ms) => Taking::Manual(started_ms.parse().ok()?),
            None => Taking::Claim(taking.parse().ok()?),
        };
        Some(Self {
            id: id.to_owned(),
            taking,
            reason,
        })
    }
}

impl Message {
    /// Something failed.
    pub(crate) fn error(error: Error) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

impl From<Told> for Message {
    fn from(told: Told) -> Self {
        match told {
            Told::Jobs(jobs) => Self {
                jobs: Some(jobs),
                ..Self::default()
            },
            Told::Recorded {
                flushed,
                finished_on,
                drained,
            } => Self {
                flushed,
                finished_on,
                drained,
                ..Self::default()
            },
        }
    }
}

/// Who records outcomes.
#[derive(Debug)]
pub enum RecordedBy {
    /// To the worker's loop.
    Loop,
    /// Whoever asked, by the connection that took the jobs' start along: it sends this command, and tells the worker's [`Standby`] of the answer.
    Along {
        /// Number of the step.
        number: i64,
        /// The command, packed.
        command: Vec<u8>,
    },
}

/// Receives a worker's messages, on an engine thread.
pub type Sink = Arc<dyn Fn(Message) + Send + Sync>;

/// Somebody waits until nothing waits, and nothing is held.
pub(crate) struct Question {
    /// Steps up to this one may have been taken before it was asked; not known yet while one is under way.
    pub(crate) after: Option<i64>,
    pub(crate) done: oneshot::Sender<bool>,
}

pub(crate) enum Command {
    Run(Reading),
    FakeClock(bool),
    Pause {
        done: Option<oneshot::Sender<()>>,
    },
    Concurrency(u32),
    Limiter(Option<RateLimit>),
    Finish(Report, Reading),
    Tick(Reading),
    /// Whoever runs jobs looks at what it was handed.
    Heard,
    Emptied(Question),
    /// What nobody has drawn is to be taken back.
    TakeBack,
    /// Whether it is to look whether jobs that were taken manually are cancelled.
    Attend(bool),
    Scan,
    Close {
        done: oneshot::Sender<()>,
    },
}
