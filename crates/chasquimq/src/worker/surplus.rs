//! The jobs that were handed over and that nobody has started. Whoever runs jobs draws each before it starts it; until then the worker can
//! take it back, without asking: an event loop that stands still keeps no job from others.
//!
//! A job is **surplus** when it was handed over with no slot free for it. It starts only while the worker's lease surely lasts: a process that
//! has stood still finds out, before it starts what others have run meanwhile.

use std::{
    collections::VecDeque,
    ops::RangeInclusive,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{batch::Batch, options::WorkerOptions};

/// Shared by the worker's loop and whoever runs its jobs.
#[derive(Debug)]
pub(super) struct Surplus {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    concurrency: u32,
    lock_duration: Duration,
    // as they were handed over
    undrawn: VecDeque<Undrawn>,
    // the lease lasts until then at least
    lease_ends: Option<Instant>,
}

/// Jobs with handles one behind the other.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Undrawn {
    // the first handle of their batch
    base: u32,
    next: u32,
    // from this one on there was no slot
    surplus: u32,
    end: u32,
}

/// What comes of drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Draw {
    /// So many jobs are the caller's.
    Drawn(u32),
    /// The worker has taken them back.
    Gone,
    /// The worker is to take them back: others may have.
    LeaseOver,
}

impl Surplus {
    pub(super) fn new(options: &WorkerOptions) -> Self {
        Self {
            state: Mutex::new(State {
                concurrency: options.concurrency,
                lock_duration: options.lock_duration,
                undrawn: VecDeque::new(),
                lease_ends: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- The worker's side

    pub(super) fn set_concurrency(&self, concurrency: u32) {
        self.state().concurrency = concurrency;
    }

    /// These jobs are about to be handed over; with them the worker holds `held` jobs.
    pub(super) fn hand_over(&self, batch: &Batch, held: u32) {
        let count = batch.jobs.len() as u32;
        let mut state = self.state();
        let slots = state.concurrency.saturating_sub(held.saturating_sub(count));
        let jobs = Undrawn {
            base: batch.base,
            next: batch.base,
            surplus: batch.base + slots.min(count),
            end: batch.base + count,
        };
        state.undrawn.push_back(jobs);
    }

    /// The lease was renewed between the moments at which that was sent and answered. If it may have lapsed before, all that nobody has drawn
    /// is taken back: others may have it. Gives the handles.
    #[must_use]
    pub(super) fn lease(&self, renewed: RangeInclusive<Instant>) -> Vec<u32> {
        let mut state = self.state();
        let lasted = state.lease_ends.is_none_or(|ends| *renewed.end() < ends);
        state.lease_ends = Some(*renewed.start() + state.lock_duration);
        if lasted {
            Vec::new()
        } else {
            state.take_back(true)
        }
    }

    /// The same for one who cannot return jobs: where it may have lapsed, it is over, and the worker's loop takes back.
    #[cfg(any(unix, test))]
    pub(super) fn prolong(&self, renewed: Instant) {
        let mut state = self.state();
        let lasted = state.lease_ends.is_none_or(|ends| renewed < ends);
        if lasted || state.undrawn.is_empty() {
            state.lease_ends = Some(renewed + state.lock_duration);
        }
    }

    /// Whether surplus waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.state().is_waiting()
    }

    /// Takes back surplus, or all that nobody has drawn. Gives the handles, oldest first.
    pub(super) fn take_back(&self, all: bool) -> Vec<u32> {
        self.state().take_back(all)
    }

    // ---- The side of whoever runs the jobs

    /// Draws the job with this handle and up to `most` with those behind it, of one batch.
    pub(super) fn draw(&self, handle: u32, most: u32) -> Draw {
        let mut state = self.state();
        let lease_ends = state.lease_ends;
        let mut undrawn = state.undrawn.iter_mut().enumerate();
        let Some((at, jobs)) = undrawn.find(|(_, jobs)| jobs.next == handle) else {
            return Draw::Gone;
        };
        let is_surplus = jobs.next >= jobs.surplus;
        if is_surplus && lease_ends.is_some_and(|ends| Instant::now() >= ends) {
            return Draw::LeaseOver;
        }
        let end = if is_surplus { jobs.end } else { jobs.surplus };
        let drawn = most.min(end - jobs.next);
        jobs.next += drawn;
        if jobs.next == jobs.end {
            state.undrawn.remove(at);
        }
        Draw::Drawn(drawn)
    }

    /// Puts drawn jobs back that did not start, the last ones drawn: they are surplus. True when none waited.
    pub(super) fn put_back(&self, handle: u32, count: u32) -> bool {
        let mut state = self.state();
        let none_waited = !state.is_waiting();
        let end = handle + count;
        let rest = state.undrawn.front_mut();
        match rest.filter(|rest| rest.next == end && rest.base <= handle) {
            Some(rest) => (rest.next, rest.surplus) = (handle, handle),
            None => state.undrawn.push_front(Undrawn {
                base: handle,
                next: handle,
                surplus: handle,
                end,
            }),
        }
        none_waited
    }
}

impl State {
    fn is_waiting(&self) -> bool {
        self.undrawn.iter().any(|jobs| jobs.surplus < jobs.end)
    }

    fn take_back(&mut self, all: bool) -> Vec<u32> {
        let mut taken = Vec::new();
        self.undrawn.retain_mut(|jobs| {
            let from = if all { jobs.next } else { jobs.next.max(jobs.surplus) };
            taken.extend(from..jobs.end);
            jobs.end = from;
            jobs.next < jobs.end
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::batch::BatchJob;

    const LOCK: Duration = Duration::from_secs(30);

    fn surplus(concurrency: u32) -> Surplus {
        Surplus::new(&WorkerOptions {
            concurrency,
            lock_duration: LOCK,
            ..WorkerOptions::default()
        })
    }

    fn batch(base: u32, count: u32) -> Batch {
        let job = |number: u32| BatchJob {
            number: u64::from(number),
            name_len: Some(0),
            data_len: 0,
            options: 0,
            timestamp: 0,
            extra: None,
            siblings: None,
        };
        Batch {
            base,
            jobs: (0..count).map(job).collect(),
            ..Batch::default()
        }
    }

    #[test]
    fn what_is_drawn_is_not_taken_back() {
        let surplus = surplus(2);
        surplus.hand_over(&batch(10, 5), 5);
        assert!(surplus.is_waiting());
        assert_eq!(surplus.draw(10, 9), Draw::Drawn(2));
        assert_eq!(surplus.draw(12, 1), Draw::Drawn(1));
        assert_eq!(surplus.take_back(false), [13, 14]);
        assert_eq!(surplus.draw(13, 1), Draw::Gone);
        assert!(!surplus.is_waiting());
    }

    #[test]
    fn jobs_with_a_slot_stay_unless_all_are_wanted() {
        let surplus = surplus(3);
        // one runs
        surplus.hand_over(&batch(0, 4), 5);
        surplus.hand_over(&batch(4, 2), 7);
        assert_eq!(surplus.take_back(false), [2, 3, 4, 5]);
        assert!(surplus.take_back(false).is_empty());
        assert_eq!(surplus.take_back(true), [0, 1]);
        assert_eq!(surplus.draw(0, 1), Draw::Gone);
    }

    #[test]
    fn more_slots_are_known_of_at_the_next_batch() {
        let surplus = surplus(1);
        surplus.hand_over(&batch(0, 2), 2);
        surplus.set_concurrency(4);
        surplus.hand_over(&batch(2, 2), 4);
        assert_eq!(surplus.take_back(false), [1]);
    }

    #[test]
    fn what_did_not_start_can_be_taken_back_again() {
        let surplus = surplus(1);
        surplus.hand_over(&batch(0, 8), 8);
        assert_eq!(surplus.draw(0, 1), Draw::Drawn(1));
        assert_eq!(surplus.draw(1, 7), Draw::Drawn(7));
        assert!(!surplus.is_waiting());
        assert!(surplus.put_back(4, 4));
        assert_eq!(surplus.draw(4, 2), Draw::Drawn(2));
        assert!(!surplus.put_back(5, 1));
        assert_eq!(surplus.draw(5, 1), Draw::Drawn(1));
        assert_eq!(surplus.take_back(false), [6, 7]);
        assert!(surplus.put_back(3, 1));
        assert_eq!(surplus.take_back(false), [3]);
    }

    #[test]
    fn surplus_starts_only_while_the_lease_lasts() {
        let surplus = surplus(1);
        let now = Instant::now();
        assert!(surplus.lease(now..=now).is_empty());
        surplus.hand_over(&batch(0, 3), 3);
        assert_eq!(surplus.draw(0, 1), Draw::Drawn(1));
        assert_eq!(surplus.draw(1, 1), Draw::Drawn(1));
        // a step that was sent too long ago
        assert!(surplus.lease(now - LOCK..=now).is_empty());
        assert_eq!(surplus.draw(2, 1), Draw::LeaseOver);
        // it may have lapsed
        assert_eq!(surplus.lease(now..=Instant::now()), [2]);
        surplus.hand_over(&batch(3, 2), 4);
        assert_eq!(surplus.draw(3, 1), Draw::Drawn(1));
    }

    #[test]
    fn a_lease_that_is_over_is_not_prolonged() {
        let surplus = surplus(1);
        let now = Instant::now();
        surplus.prolong(now);
        surplus.hand_over(&batch(0, 3), 3);
        assert_eq!(surplus.draw(0, 1), Draw::Drawn(1));
        surplus.prolong(now + LOCK / 2);
        assert_eq!(surplus.draw(1, 1), Draw::Drawn(1));
        surplus.prolong(now + 2 * LOCK);
        assert_eq!(surplus.lease(now..=now + 2 * LOCK), [2]);
        // nothing is left that could have lapsed
        surplus.prolong(now + 4 * LOCK);
        surplus.hand_over(&batch(3, 2), 4);
        assert!(surplus.lease(now..=now + 4 * LOCK).is_empty());
    }

    #[test]
    fn a_job_with_a_slot_starts_whatever_the_lease() {
        let surplus = surplus(1);
        let now = Instant::now();
        assert!(surplus.lease(now - LOCK..=now).is_empty());
        surplus.hand_over(&batch(0, 2), 2);
        assert_eq!(surplus.draw(0, 2), Draw::Drawn(1));
        assert_eq!(surplus.draw(1, 1), Draw::LeaseOver);
    }
}
