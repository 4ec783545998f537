//! Whether a worker takes jobs. What changes it is in `work_loop/mode`.

use std::time::Instant;

/// What a worker's loop does about jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// It does not run yet, is paused, or closes: it takes none, and gives back what comes.
    Paused,
    /// It takes as many as there is room for.
    Taking,
    /// A rate limit lets nothing start here until then.
    Resting(Instant),
    /// What was handed over was taken back, as nobody drew it: it takes none until somebody is heard.
    Silent,
}

impl Mode {
    /// Whether jobs are wanted, now or once a limit is over, or somebody is heard.
    pub(crate) fn is_running(self) -> bool {
        self != Self::Paused
    }

    /// Whether steps may take jobs.
    pub(crate) fn may_take(self) -> bool {
        matches!(self, Self::Taking | Self::Resting(_))
    }

    /// When a rate limit lets jobs start here again.
    pub(crate) fn rests_until(self) -> Option<Instant> {
        match self {
            Self::Resting(until) => Some(until),
            _ => None,
        }
    }

    /// Whether a rate limit lets nothing start here now.
    pub(crate) fn is_limited(self) -> bool {
        self.rests_until().is_some_and(|until| until > Instant::now())
    }
}
