//! What a worker knows from one step to the next. Whoever takes its steps has it: the worker's loop, or whoever that has lent it to.

use std::time::Instant;

use super::{
    client_clock::Offset,
    options::WorkerOptions,
    step_request::{StepRequest, Waits},
    take::{
        due::{Due, Found},
        in_flight::InFlight,
        pace::Pace,
        room::Room,
    },
};

/// Jobs that a step takes to start now; a worker that wants more takes another step.
pub(crate) const MOST_WANTED: i64 = 1000;
/// For a step's time: the moment at which it is carried out.
const CARRIED_OUT: i64 = -1;

/// What it holds, and what its steps go by.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    pub(crate) in_flight: InFlight,
    pub(crate) pace: Pace,
    pub(crate) due: Due,
    pub(crate) offset: Offset,
    /// The last fetch found less than it wanted: the marker tells when there is more.
    pub(crate) has_room: bool,
    /// It found what it wanted, and more could start here: once whoever runs jobs is heard.
    pub(crate) reaches: bool,
    pub(crate) drained: bool,
    /// How it is told of work.
    pub(crate) waits: Waits,
    /// A marker came since the last fetch, or was waited for.
    pub(crate) was_woken: bool,
    /// The last report that is recorded.
    pub(crate) flushed: u64,
    pub(crate) step_number: i64,
}

impl Standing {
    /// Jobs to take, `coming` jobs being about to be held.
    pub(crate) fn room(&self, coming: u32, options: &WorkerOptions) -> Room {
        let held = self.in_flight.jobs().saturating_add(coming);
        let want = i64::from(options.concurrency.saturating_sub(held));
        if want > MOST_WANTED {
            return Room {
                want: MOST_WANTED,
                reach: i64::from(self.pace.reach()),
                surplus: 0,
            };
        }
        Room {
            want,
            reach: i64::from(self.pace.reach()),
            surplus: match options.max_stalled_count {
                // whatever is lost with this worker fails
                0 => 0,
                _ if !options.takes_ahead => 0,
                _ => i64::from(self.pace.ahead(held, options.concurrency)),
            },
        }
    }

    /// What the next step asks for. `looks_for_due`: it does not matter how lately that was done.
    pub(crate) fn ask(&mut self, now_ms: u64, room: Room, looks_for_due: bool) -> StepRequest {
        self.step_number += 1;
        let leaves_due = self.due.is_left(Instant::now()) && !looks_for_due;
        let mut request = StepRequest::new(self.step_number, now_ms as i64, room, leaves_due);
        request.waits = self.waits;
        self.was_woken |= self.has_room;
        let may_wait = std::mem::take(&mut self.was_woken) || self.due.next().is_some() || room.is_part();
        request.asks_due = room.want >= 0 && may_wait;
        request
    }

    /// The same of a step that takes place as soon as it comes.
    pub(crate) fn ask_at_once(&mut self, room: Room) -> StepRequest {
        self.step_number += 1;
        let leaves_due = self.due.is_left(Instant::now());
        let mut request = StepRequest::new(self.step_number, CARRIED_OUT, room, leaves_due);
        request.waits = self.waits;
        request
    }

    /// Whether the server tells it of the next work.
    pub(crate) fn waits(&self) -> bool {
        self.waits == Waits::Yes
    }

    /// It was told, and is not told of more.
    pub(crate) fn hears_of_work(&mut self) {
        if self.waits == Waits::Yes {
            self.waits = Waits::No;
        }
    }

    /// A step that had this room found this much.
    pub(crate) fn has_fetched(&mut self, room: Room, found: Found) {
        let takes_all = found.taken >= room.want;
        self.reaches = room.is_part() && found.taken >= room.reach && found.is_left && !takes_all;
        self.has_room = room.want > 0 && !takes_all && !self.reaches;
        if room.is_part() && found.taken > room.reach {
            self.pace.found_all_busy(found.carried_out);
        }
        if self.waits != Waits::Deaf {
            self.waits = if found.waits { Waits::Yes } else { Waits::No };
        }
        if self.has_room {
            self.due.has_room(found);
        } else {
            self.due.is_full(found);
        }
    }

    /// Whether it is to be told that nothing is left: when a step finds less than it wanted for the first time.
    pub(crate) fn is_drained(&mut self, want: i64, found_all: bool) -> bool {
        let is_news = want > 0 && !found_all && !self.drained;
        if want > 0 {
            self.drained = !found_all;
        }
        is_news
    }
}
