//! What can go wrong, as variants a caller can act on.

use std::{
    convert::Infallible,
    fmt::{self, Write as _},
    ops::Deref,
    time::Duration,
};

/// Bytes of the reason why a value cannot be read, which may become that of a job's failure.
const LONGEST_WHY: usize = 500;

/// Result of every engine call.
pub type Result<T> = std::result::Result<T, Error>;

/// An engine error. `code()` is BullMQ's numeric code where BullMQ has one.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job does not exist (any more).
    #[error("Missing key for job {job}. {command}")]
    JobMissing {
        /// Id of the job.
        job: String,
        /// What was attempted, in BullMQ's words.
        command: &'static str,
    },
    /// The job is not held by the caller: its lease ran out, or it never was.
    #[error("Missing lock for job {job}. {command}")]
    LockMissing {
        /// Id of the job.
        job: String,
        /// What was attempted.
        command: &'static str,
    },
    /// The job is held by somebody else.
    #[error("Lock mismatch for job {job}. Cmd {command} from active")]
    LockMismatch {
        /// Id of the job.
        job: String,
        /// What was attempted.
        command: &'static str,
    },
    /// The job is in another state than the call needs.
    #[error("Job {job} is not in the {state} state. {command}")]
    NotInState {
        /// Id of the job.
        job: String,
        /// The state that was needed.
        state: String,
        /// What was attempted.
        command: &'static str,
    },
    /// A parent cannot complete before its children have ended.
    #[error("Job {job} has pending dependencies. {command}")]
    PendingChildren {
        /// Id of the parent.
        job: String,
        /// What was attempted.
        command: &'static str,
    },
    /// A child whose failure fails its parent has failed.
    #[error("Cannot complete job {job} because it has at least one failed child. {command}")]
    FailedChildren {
        /// Id of the parent.
        job: String,
        /// What was attempted.
        command: &'static str,
    },
    /// The job's parent does not exist.
    #[error("Missing key for parent job {parent}. {command}")]
    ParentMissing {
        /// The parent, as users see it: `<prefix>:<queue>:<id>`.
        parent: String,
        /// What was attempted.
        command: &'static str,
    },
    /// The job has a parent that exists, and is another one.
    #[error("The parent job {parent} cannot be replaced. {command}")]
    ParentKept {
        /// The parent that was asked for, as users see it.
        parent: String,
        /// What was attempted.
        command: &'static str,
    },
    /// The job is the latest iteration of a scheduler: it goes with its scheduler.
    #[error("Job {job} belongs to a job scheduler and cannot be removed directly. removeJob")]
    OfScheduler {
        /// Id of the job.
        job: String,
    },
    /// There is a job of the id that the scheduler's next iteration would have.
    #[error("Cannot create job scheduler iteration - job ID already exists. addJobScheduler")]
    IterationIdTaken,
    /// There are jobs of the ids that the scheduler's next iterations would have.
    #[error("Cannot create job scheduler iteration - current and next time slots already have jobs. addJobScheduler")]
    IterationSlotsTaken,
    /// The queue has a maximum length, and no room for all jobs that were to be added. None was.
    #[error(
        "Queue {queue} is full: {length} of at most {max_length} jobs wait there, and {jobs} more were to be added"
    )]
    QueueFull {
        /// The queue, as users see it: `<prefix>:<queue>`.
        queue: String,
        /// Number of jobs of the call for this queue.
        jobs: u64,
        /// Number of jobs that wait there.
        length: u64,
        /// How many may.
        max_length: u64,
    },
    /// A group has as many jobs as the add lets it have. No job of the call was added.
    #[error("Group {group} is full: {size} of at most {max_size} jobs wait there. addJob")]
    GroupFull {
        /// Its name.
        group: String,
        /// Number of jobs that wait there.
        size: u64,
        /// How many may.
        max_size: u64,
    },
    /// Obliterate without force met active jobs.
    #[error("Cannot obliterate queue with active jobs")]
    ActiveJobs,
    /// The queue was resumed while it was being obliterated.
    #[error("Cannot obliterate non-paused queue")]
    NotPaused,
    /// A bad option or argument, found before anything was sent.
    #[error("{0}")]
    Invalid(String),
    /// The connection could not be made, or broke.
    #[error("{message}")]
    Connection {
        /// The cause, in Node's words where Node has them (`connect ECONNREFUSED 127.0.0.1:6379`).
        message: String,
        /// Node's error code where there is one, such as `ECONNREFUSED`.
        code: Option<&'static str>,
    },
    /// The client was closed before the call was answered.
    #[error("Connection is closed.")]
    Closed,
    /// A batch could not be confirmed for so long that the server has forgotten it: it may or may not have been carried out.
    #[error("The server did not confirm this call within {0:?}; it may have been carried out")]
    Unconfirmed(Duration),
    /// The server answered a command with an error.
    #[error("{0}")]
    Refused(Refusal),
    /// The servers are not such that a command could be sent to one.
    #[error("{0}")]
    Server(String),
    /// The server is older than 7.0.
    #[error("Redis version needs to be greater or equal than 7.0.0 Current: {0}")]
    ServerTooOld(String),
    /// The server does not know the command that runs scripts.
    #[error("The server runs no scripts, which ChasquiMQ needs: it does not know the command {0}")]
    NoScripts(&'static str),
    /// The server has no library of this release, and the user may neither load it nor run scripts.
    #[error("The server has no library {0}, and this user may not load it: an administrator calls npx chasquimq library load")]
    LibraryMissing(&'static str),
    /// The server has another library, or other functions, under the names of this release's, and the user may not run scripts instead.
    #[error(
        "The library {0} in the server is somebody else's, and is not called: an administrator finds out whose, and calls npx chasquimq library load --replace"
    )]
    LibraryForeign(&'static str),
    /// A fault of the engine. A worker that tells it fetches no more; others take over its jobs when its lease has run out.
    #[error("The worker has stopped, for a fault in its engine: {0}")]
    Panicked(String),
    /// A reply or a stored value is not of the form this engine writes.
    #[error("{what} is not readable: {why}")]
    Malformed {
        /// Which value.
        what: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What a server answered instead of a result. Reads as its message.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The server's words.
    pub message: String,
    /// What it was asked, where that is known.
    pub command: Option<Box<RefusedCommand>>,
}

/// A command that a server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCommand {
    /// Its name, in small letters.
    pub name: String,
    /// Its arguments; those of functions and scripts end with the key, as the rest is packed.
    pub args: Vec<String>,
}

impl Refusal {
    /// The server's code, with which its words begin: `NOPERM`, `NOSCRIPT`, `ERR` where it has none.
    pub fn code(&self) -> &str {
        self.message.split(' ').next().unwrap_or_default()
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self { message, command: None }
    }
}

impl Deref for Refusal {
    type Target = str;

    fn deref(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error {
    /// BullMQ's numeric error code, for the errors that have one.
    pub fn code(&self) -> Option<i32> {
        match self {
            Error::JobMissing { .. } => Some(-1),
            Error::LockMissing { .. } => Some(-2),
            Error::NotInState { .. } => Some(-3),
            Error::PendingChildren { .. } => Some(-4),
            Error::ParentMissing { .. } => Some(-5),
            Error::LockMismatch { .. } => Some(-6),
            Error::ParentKept { .. } => Some(-7),
            Error::FailedChildren { .. } => Some(-9),
            Error::OfScheduler { .. } => Some(-8),
            Error::IterationIdTaken => Some(-10),
            Error::IterationSlotsTaken => Some(-11),
            _ => None,
        }
    }

    /// True when the call did not reach the server or its answer was lost: the same call may work a moment later.
    pub fn is_connection(&self) -> bool {
        matches!(self, Error::Connection { .. } | Error::Closed)
    }

    /// The error of a code; `job` is the parent's key where it is about that.
    pub(crate) fn from_code(code: i64, job: &str, state: &str, command: &'static str) -> Self {
        let job = job.to_owned();
        match code {
            -1 => Error::JobMissing { job, command },
            -2 => Error::LockMissing { job, command },
            -3 => Error::NotInState {
                job,
                state: state.to_owned(),
                command,
            },
            -4 => Error::PendingChildren { job, command },
            -5 => Error::ParentMissing { parent: job, command },
            -6 => Error::LockMismatch { job, command },
            -7 => Error::ParentKept { parent: job, command },
            -9 => Error::FailedChildren { job, command },
            -8 => Error::OfScheduler { job },
            -10 => Error::IterationIdTaken,
            -11 => Error::IterationSlotsTaken,
            other => Error::Server(format!("Unknown code {other} error for {job}. {command}")),
        }
    }

    /// Why a job fails that cannot be read.
    pub(crate) fn reason_to_fail(&self) -> String {
        match self {
            Error::Malformed { what, why } => format!("could not be read: {what}: {why}"),
            other => format!("could not be read: {other}"),
        }
    }

    /// A value that is not readable, and what is wrong with it, in no more than 500 bytes.
    pub fn malformed(what: &str, why: impl fmt::Display) -> Self {
        let mut short = Short(String::new());
        // no more than that is written
        let _ = write!(short, "{why}");
        Error::Malformed {
            what: what.to_owned(),
            why: short.0,
        }
    }
}

/// Lets what cannot fail stand where something may fail with an [`Error`]: a [`crate::ConnectOptions`] where a URL may stand.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A text that ends after [`LONGEST_WHY`] bytes: what is wrong with stored values may repeat them.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LONGEST_WHY.saturating_sub(self.0.len());
        let fits = text.len() <= room;
        let end = text
            .char_indices()
            .map(|(at, _)| at)
            .take_while(|at| *at <= room)
            .last();
        self.0.push_str(if fits { text } else { &text[..end.unwrap_or(0)] });
        fits.then_some(()).ok_or(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_value_cannot_be_read_is_told_in_a_few_words() {
        let why = |text: &str| match Error::malformed("a text", text) {
            Error::Malformed { why, .. } => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(why("ñ".repeat(250).as_str()).len(), 500);
        assert_eq!(why(&format!("x{}", "ñ".repeat(1 << 20))).len(), 499);
        assert_eq!(why("nil"), "nil");
    }
}
