//! The jobs that were handed over and that nobody has started. They are the worker's until whoever runs jobs draws them, each right before it starts
//! it; so the worker can take back what waits behind a handler, without asking: an event loop that stands still keeps no job from others.
//!
//! A batch that is handed over is an **offer**. Which of its jobs are drawn stands in a word that both sides change by compare-and-swap ([`Words`]): a
//! draw costs no call. A job is **surplus** when it was handed over with no slot free for it.
//!
//! What nobody has drawn is looked after when its time is over, or when nobody has drawn anything for a while: it goes back, if another worker is
//! idle. Surplus, which started later than its worker's pace said, goes back in any case a little later.

use std::{
    collections::VecDeque,
    ops::RangeInclusive,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

mod lease;
mod words;

use self::lease::Lease;
pub use self::words::Words;
use super::batch::Batch;
use crate::{clock::Moment, worker::options::WorkerOptions};

/// Surplus starts within the window of its worker's pace, one job after the other. What is late by so much is somebody else's, if anybody is idle: that is asked
/// first, and takes as long again.
const SURPLUS_PATIENCE: Duration = Duration::from_millis(1);
/// The same of jobs with a slot, which start at once unless the event loop is busy.
const PATIENCE: Duration = Duration::from_millis(4);
/// They start one after the other. All of them have so much time, in terms of [`PATIENCE`].
const SLOTTED: u32 = 4;
/// An event loop that is late each time, though no job of this worker runs there, is given more time, up to this: perhaps the machine is slow, and every
/// worker as late.
const MOST_PATIENCE: Duration = Duration::from_secs(1);
/// How often is asked whether anybody is idle.
const LOOK: Duration = Duration::from_millis(5);
/// Surplus that is late by so much goes back whoever is idle.
const LONGEST: Duration = Duration::from_millis(50);

/// Shared by the worker's loop and whoever runs its jobs.
#[derive(Debug)]
pub(crate) struct Offers {
    words: Words,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    concurrency: u32,
    lease: Lease,
    // those of which not all was drawn when that was looked at last, oldest first
    offers: VecDeque<Offer>,
    // number of the next one
    next: u32,
    // handles that are to be returned: their offer's word was wanted for another
    evicted: Vec<u32>,
    // whoever runs jobs has reasons of its own to start none
    held: bool,
    // of jobs with a slot
    patience: Duration,
    // the first that nobody had drawn at the last look, and since when that is known: its offer, and its place there
    first: Option<(u32, u32)>,
    since: Instant,
    // when was asked last whether anybody is idle
    looked: Option<Instant>,
}

/// A batch, with handles one behind the other.
#[derive(Debug, Clone, Copy)]
struct Offer {
    number: u32,
    base: u32,
    // jobs for which there were slots
    slots: u32,
    since: Instant,
}

/// When jobs are late.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Within this surplus was to start.
    pub(crate) window: Duration,
    /// Within this another one of them starts.
    pub(crate) gap: Duration,
    /// Jobs with slots are late at all: another worker could start them.
    pub(crate) with_slots: bool,
}

/// What is to become of what nobody has drawn in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Late {
    /// It is wanted, if anybody is idle.
    IfAnyIdle,
    /// Surplus started too slowly.
    Surplus,
}

/// Jobs that are taken back, oldest first.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TakenBack {
    pub(crate) handles: Vec<u32>,
    /// Some of them had slots: nobody draws.
    pub(crate) is_silent: bool,
}

impl Offers {
    pub(crate) fn new(options: &WorkerOptions) -> Self {
        Self {
            words: Words::new(),
            state: Mutex::new(State {
                concurrency: options.concurrency,
                lease: Lease::new(options.lock_duration),
                offers: VecDeque::new(),
                next: 0,
                evicted: Vec::new(),
                held: false,
                patience: PATIENCE,
                first: None,
                since: Instant::now(),
                looked: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- The worker's side

    pub(crate) fn set_concurrency(&self, concurrency: u32) {
        self.state().concurrency = concurrency;
    }

    /// These jobs are about to be handed over; with them the worker holds `held` jobs.
    pub(crate) fn hand_over(&self, batch: &mut Batch, held: u32) {
        let count = batch.jobs.len() as u32;
        let mut state = self.state();
        state.forget_drawn(&self.words);
        let free = state.concurrency.saturating_sub(held.saturating_sub(count));
        let number = state.next;
        state.next = state.next.wrapping_add(1);
        if state
            .offers
            .front()
            .is_some_and(|first| number.wrapping_sub(first.number) >= Words::COUNT)
        {
            // nobody has looked at so many batches, and somebody else may
            let first = state.offers.pop_front();
            let evicted = first.map(|offer| offer.take_back(&self.words, 0)).unwrap_or_default();
            state.evicted.extend(evicted);
        }
        batch.offer = number;
        // a word has no room for more
        let offered = count.min(Words::MOST);
        state.evicted.extend(batch.base + offered..batch.base + count);
        self.words.offer(number, offered);
        let since = Instant::now();
        if state.offers.is_empty() {
            (state.first, state.since) = (Some((number, 0)), since);
        }
        state.offers.push_back(Offer {
            number,
            base: batch.base,
            slots: free.min(count),
            since,
        });
    }

    /// Handles to be returned.
    pub(crate) fn evicted(&self) -> Vec<u32> {
        std::mem::take(&mut self.state().evicted)
    }

    /// The lease was renewed between the moments at which that was sent and answered. If it may have lapsed before, all that nobody has drawn
    /// is taken back: others may have it. Gives the handles.
    #[must_use]
    pub(crate) fn lease(&self, renewed: RangeInclusive<Moment>) -> Vec<u32> {
        let mut state = self.state();
        let lasted = state.lease.renew(*renewed.start(), renewed.end());
        if lasted {
            Vec::new()
        } else {
            state.take_back(&self.words, true).handles
        }
    }

    /// The same for one who cannot return jobs: where it may have lapsed, it is over, and the worker's loop takes back.
    #[cfg(any(unix, test))]
    pub(crate) fn prolong(&self, renewed: Moment) {
        let mut state = self.state();
        if state.lease.lasts(&renewed) || !state.is_waiting(&self.words) {
            state.lease.renew(renewed, &renewed);
        }
    }

    /// The lease is gone, whatever is thought of its time.
    pub(crate) fn lapsed(&self) {
        self.state().lease.lapse();
    }

    /// Whether anything is not drawn.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state().is_waiting(&self.words)
    }

    /// When to look after what is not drawn.
    pub(crate) fn next_look(&self, terms: Terms) -> Option<Instant> {
        self.look_after(terms, Instant::now())
    }

    fn look_after(&self, terms: Terms, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        state.forget_drawn(&self.words);
        if state.held {
            // nobody tells when that is over
            return state.is_waiting(&self.words).then(|| now + LOOK);
        }
        state.see_progress(&self.words, now);
        let late = state.late_at(&self.words, terms)?;
        Some(match state.looked {
            Some(looked) => late.max(looked + LOOK),
            None => late,
        })
    }

    /// What is late now, if anything is.
    pub(crate) fn late(&self, terms: Terms, now: Instant) -> Option<Late> {
        let look = self.look_after(terms, now)?;
        if look > now {
            return None;
        }
        let mut state = self.state();
        if state.held {
            return None;
        }
        state.looked = Some(now);
        let is_long = |offer: &Offer| offer.has_surplus(&self.words) && offer.since + terms.window + LONGEST <= now;
        Some(match state.offers.iter().any(is_long) {
            true => Late::Surplus,
            false => Late::IfAnyIdle,
        })
    }

    /// Takes back surplus, or all that nobody has drawn.
    pub(crate) fn take_back(&self, all: bool) -> TakenBack {
        self.state().take_back(&self.words, all)
    }

    /// The same of what somebody else could start: all, if what had slots is late. The worker holds `held` jobs, with those that nobody has drawn.
    pub(crate) fn give_up(&self, terms: Terms, now: Instant, held: u32) -> TakenBack {
        let mut state = self.state();
        let runs_some = held > state.undrawn(&self.words);
        let slotted = state.slotted_late_at(&self.words);
        let all = terms.with_slots && slotted.is_some_and(|late| late <= now);
        let taken = state.take_back(&self.words, all);
        if taken.is_silent && !runs_some {
            state.patience = (state.patience * 2).min(MOST_PATIENCE);
        }
        taken
    }

    // ---- The side of whoever runs the jobs

    /// What draws share.
    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    /// Whether jobs may start: the lease surely lasts. A process that has stood still finds out here, before it starts what others have run meanwhile.
    pub(crate) fn may_start(&self) -> bool {
        self.state().lease.lasts(&Moment::now())
    }

    /// As [`Offers::may_start`], of jobs that were drawn a while ago: the same number as when they were, `None` while the lease may be over.
    pub(crate) fn lease_number(&self) -> Option<u32> {
        self.state().lease.number()
    }

    /// Nothing is late while whoever runs jobs has reasons of its own to start none.
    pub(crate) fn hold(&self, held: bool) {
        let mut state = self.state();
        state.held = held;
        if !held {
            state.since = Instant::now();
            state.looked = Some(state.since);
        }
    }
}

impl Offer {
    fn is_waiting(&self, words: &Words) -> bool {
        let (next, end) = words.read(self.number);
        next < end
    }

    fn has_slotted(&self, words: &Words) -> bool {
        let (next, end) = words.read(self.number);
        next < end.min(self.slots)
    }

    fn has_surplus(&self, words: &Words) -> bool {
        let (next, end) = words.read(self.number);
        next.max(self.slots) < end
    }

    /// Takes back what is not drawn from this offset on. Gives the handles.
    fn take_back(&self, words: &Words, from: u32) -> std::ops::Range<u32> {
        let before = words.change(self.number, |next, end| {
            let from = next.max(from);
            (from < end).then_some((next, from))
        });
        match before {
            Some((next, end)) => self.base + next.max(from)..self.base + end,
            None => 0..0,
        }
    }
}

impl State {
    fn is_waiting(&self, words: &Words) -> bool {
        self.offers.iter().any(|offer| offer.is_waiting(words))
    }

    fn undrawn(&self, words: &Words) -> u32 {
        let count = |offer: &Offer| {
            let (next, end) = words.read(offer.number);
            end.saturating_sub(next)
        };
        self.offers.iter().map(count).sum()
    }

    /// Notes whether anything was drawn since the last look.
    fn see_progress(&mut self, words: &Words, now: Instant) {
        let first = self
            .offers
            .front()
            .map(|offer| (offer.number, words.read(offer.number).0));
        if first != self.first {
            (self.first, self.since) = (first, now);
        }
    }

    /// When something is late.
    fn late_at(&self, words: &Words, terms: Terms) -> Option<Instant> {
        let surplus = self.offers.iter().find(|offer| offer.has_surplus(words)).map(|offer| {
            let by_pace = offer.since + terms.window;
            by_pace.min(self.since + terms.gap) + SURPLUS_PATIENCE
        });
        let slotted = terms.with_slots.then(|| self.slotted_late_at(words)).flatten();
        surplus.into_iter().chain(slotted).min()
    }

    /// When jobs that have slots are late: as nobody draws, or as there are so many.
    fn slotted_late_at(&self, words: &Words) -> Option<Instant> {
        let slotted = self.offers.iter().find(|offer| offer.has_slotted(words))?;
        let in_all = slotted.since + self.patience * SLOTTED;
        Some(in_all.min(self.since + self.patience))
    }

    /// Forgets offers of which all is drawn. An event loop that draws in time is given less time, little by little.
    fn forget_drawn(&mut self, words: &Words) {
        while let Some(first) = self.offers.front() {
            if first.is_waiting(words) {
                return;
            }
            self.offers.pop_front();
            self.patience = (self.patience / 2).max(PATIENCE);
            self.looked = None;
        }
    }

    fn take_back(&mut self, words: &Words, all: bool) -> TakenBack {
        let mut taken = TakenBack::default();
        for offer in &self.offers {
            taken.is_silent |= all && offer.has_slotted(words);
            let handles = offer.take_back(words, if all { 0 } else { offer.slots });
            taken.handles.extend(handles);
        }
        self.forget_drawn(words);
        taken
    }
}

#[cfg(test)]
mod tests;
