//! When an idle worker looks for the next delayed job: by its own clock, since the server ends a wait late. Which jobs are due, and how they become
//! waiting, is decided in `lua/states/due.lua`, by the step of any worker.

use std::time::{Duration, Instant};

/// What is due later is waited for anew. Where a clock is set, or stands still, the looks of a worker that waits tell (`idle/quiet`).
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// What is due comes in batches where much is: having taken jobs, a worker that has room for more looks for it after so long.
const INTERVAL: Duration = Duration::from_millis(5);
/// A worker that looked, and found that another one had been there before, looks so much later than the next job is due: not all of those
/// who are idle look after each job.
const STEP_BACK: Duration = Duration::from_millis(150);

/// What a step found that had room for more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// Jobs it took.
    pub(crate) taken: i64,
    /// When the next job is due, epoch ms; -1 = none is known of.
    pub(crate) due_ms: i64,
    /// When it was carried out, epoch ms of the same clock.
    pub(crate) now_ms: u64,
    /// The same moment.
    pub(crate) carried_out: Instant,
    /// It left work that somebody may start, or took none and delayed what was due.
    pub(crate) is_left: bool,
    /// It left nothing, and its worker is told of what comes.
    pub(crate) waits: bool,
}

/// What is to be done when a job is due.
#[derive(Debug, PartialEq)]
pub(crate) enum Ring {
    /// This worker looks.
    Look,
    /// It has no slot free: another one is to look.
    HandOn,
}

/// The next look.
#[derive(Debug)]
pub(crate) struct Due {
    next: Option<Instant>,
    // the time behind it
    due_ms: i64,
    // the worker has no slot free
    is_full: bool,
    // it is being looked
    rang: bool,
    // jobs were taken a moment ago: until then, steps leave alone what is due
    left_until: Option<Instant>,
}

impl Found {
    /// When the next job is due.
    fn due(self) -> Option<Instant> {
        (self.due_ms >= 0).then(|| {
            let until_due = Duration::from_millis((self.due_ms as u64).saturating_sub(self.now_ms));
            self.carried_out + until_due.min(LONGEST_WAIT)
        })
    }
}

impl Default for Due {
    fn default() -> Self {
        Self {
            next: None,
            due_ms: -1,
            is_full: false,
            rang: false,
            left_until: None,
        }
    }
}

impl Due {
    /// When a job is due, if that is known.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// The same, epoch ms of the server's clock as a step told it; -1: it is not known.
    pub(crate) fn known_ms(&self) -> i64 {
        match self.next {
            Some(_) => self.due_ms,
            None => -1,
        }
    }

    /// What it is time to do. It is said once.
    pub(crate) fn rings(&mut self, now: Instant) -> Option<Ring> {
        self.next.take_if(|next| *next <= now)?;
        if self.is_full {
            return Some(Ring::HandOn);
        }
        self.rang = true;
        Some(Ring::Look)
    }

    /// Forgets what is due. Gives whether that was known.
    pub(crate) fn forget(&mut self) -> bool {
        std::mem::take(self).next.is_some()
    }

    /// Whether a step leaves delayed jobs where they are, for the next batch of them.
    pub(crate) fn is_left(&mut self, now: Instant) -> bool {
        self.left_until.take_if(|end| *end <= now);
        self.left_until.is_some()
    }

    /// A step took all that there was room for. What was found to be due by then may be known to this worker alone.
    pub(crate) fn is_full(&mut self, found: Found) {
        *self = Self {
            next: found.due(),
            is_full: true,
            ..Self::default()
        };
    }

    /// A step had room for more.
    pub(crate) fn has_room(&mut self, found: Found) {
        let Found {
            taken,
            due_ms,
            now_ms,
            carried_out,
            is_left,
            ..
        } = found;
        if self.left_until.is_none() && taken > 0 && due_ms > now_ms as i64 {
            self.left_until = Some(carried_out + INTERVAL);
        }
        let others_came_first = std::mem::take(&mut self.rang) && taken == 0 && !is_left && due_ms != self.due_ms;
        let soonest = others_came_first.then(|| carried_out + STEP_BACK).or(self.left_until);
        self.due_ms = due_ms;
        self.is_full = false;
        self.next = found.due().map(|due| soonest.map_or(due, |soonest| due.max(soonest)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_000_000;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A step at `NOW_MS` took so many jobs, and the next is due so much later.
    fn found(taken: i64, in_ms: u64, carried_out: Instant) -> Found {
        Found {
            taken,
            due_ms: (NOW_MS + in_ms) as i64,
            now_ms: NOW_MS,
            carried_out,
            is_left: false,
            waits: false,
        }
    }

    #[test]
    fn a_look_is_when_the_job_is_due_and_within_an_hour() {
        let (mut due, at) = (Due::default(), Instant::now());
        due.has_room(found(0, 300, at));
        assert_eq!(due.next(), Some(at + ms(300)));
        due.has_room(found(0, 7_200_000, at));
        assert_eq!(due.next(), Some(at + ms(3_600_000)));
        due.has_room(Found {
            due_ms: -1,
            ..found(0, 0, at)
        });
        assert_eq!(due.next(), None);
    }

    #[test]
    fn it_rings_once() {
        let (mut due, at) = (Due::default(), Instant::now());
        due.has_room(found(0, 300, at));
        assert_eq!(due.rings(at + ms(299)), None);
        assert_eq!(due.rings(at + ms(300)), Some(Ring::Look));
        assert_eq!(due.rings(at + ms(300)), None);
    }

    #[test]
    fn jobs_that_are_due_soon_after_others_come_in_batches() {
        let (mut due, at) = (Due::default(), Instant::now());
        due.has_room(found(1, 1, at));
        assert_eq!(due.next(), Some(at + INTERVAL));
        assert!(due.is_left(at + ms(4)));
        // what is taken meanwhile does not put it off
        due.has_room(found(1, 1, at + ms(3)));
        assert_eq!(due.next(), Some(at + INTERVAL));
        assert!(!due.is_left(at + INTERVAL));
        due.has_room(found(1, 20, at));
        assert_eq!(due.next(), Some(at + ms(20)));
    }

    #[test]
    fn who_took_nothing_steps_back_unless_it_delayed_what_was_due() {
        for (is_left, next) in [(false, STEP_BACK), (true, ms(20))] {
            let (mut due, at) = (Due::default(), Instant::now());
            due.has_room(found(0, 1, at));
            assert_eq!(due.rings(at + ms(1)), Some(Ring::Look));
            due.has_room(Found {
                is_left,
                ..found(0, 20, at)
            });
            assert_eq!(due.next(), Some(at + next));
        }
    }

    #[test]
    fn a_worker_without_room_leaves_nothing_for_later() {
        let (mut due, at) = (Due::default(), Instant::now());
        due.has_room(found(1, 1, at));
        due.is_full(Found {
            due_ms: -1,
            ..found(1, 0, at)
        });
        assert_eq!((due.next(), due.is_left(at)), (None, false));
    }

    #[test]
    fn a_worker_without_room_hands_on_what_it_knows_and_forgets_it() {
        let (mut due, at) = (Due::default(), Instant::now());
        due.is_full(found(1, 300, at));
        assert_eq!(due.rings(at + ms(299)), None);
        assert_eq!(due.rings(at + ms(300)), Some(Ring::HandOn));
        assert_eq!((due.rings(at + ms(300)), due.next()), (None, None));
        due.is_full(found(1, 300, at));
        due.has_room(found(0, 400, at + ms(1)));
        assert_eq!(due.rings(at + ms(401)), Some(Ring::Look));
        assert!(!due.forget());
        due.has_room(found(0, 400, at));
        assert!(due.forget());
        assert_eq!(due.next(), None);
    }

    #[test]
    fn a_worker_that_came_too_late_steps_back() {
        let (mut due, at) = (Due::default(), Instant::now());
        due.has_room(found(0, 10, at));
        assert_eq!(due.rings(at + ms(10)), Some(Ring::Look));
        // somebody took that one
        due.has_room(found(0, 20, at + ms(10)));
        assert_eq!(due.next(), Some(at + ms(10) + STEP_BACK));
        // once
        due.has_room(found(0, 20, at + ms(10)));
        assert_eq!(due.next(), Some(at + ms(30)));
    }

    #[test]
    fn a_worker_that_finds_the_job_still_to_come_does_not() {
        let (mut due, at) = (Due::default(), Instant::now());
        due.has_room(found(0, 10, at));
        assert_eq!(due.rings(at + ms(10)), Some(Ring::Look));
        due.has_room(Found {
            now_ms: NOW_MS + 8,
            ..found(0, 10, at + ms(10))
        });
        assert_eq!(due.next(), Some(at + ms(12)));
    }
}
