//! Whether the worker takes jobs: all changes of its mode are here.

use std::time::Instant;

use super::Loop;
use crate::worker::mode::Mode;

impl Loop {
    /// It is to run. What was there before it is looked for at once.
    pub(super) fn run_on(&mut self) {
        if !self.mode.is_running() {
            self.mode = Mode::Taking;
            self.look_again = true;
            self.rounds.next_scan = self.options.stalled_interval.map(|_| Instant::now());
        }
    }

    /// It is to take nothing more.
    pub(super) fn stop_taking(&mut self) {
        self.mode = Mode::Paused;
        self.standing.has_room = false;
        self.questions.clear();
    }

    /// A rate limit lets nothing start here until then. Whoever takes nothing hears of it by the next step that does.
    pub(super) fn rest(&mut self, until: Instant) {
        if self.mode.may_take() {
            self.mode = Mode::Resting(until);
        }
    }

    /// A rate limit may let jobs start again. Looking in vain once more is told once more, as BullMQ does.
    pub(super) fn end_rest(&mut self) {
        if self.mode.rests_until().is_some() {
            self.mode = Mode::Taking;
            self.standing.drained = false;
            self.look_again = true;
        }
    }

    /// Nobody drew what was handed over. True if this is news.
    pub(super) fn fall_silent(&mut self) -> bool {
        let is_news = self.mode.may_take();
        if is_news {
            self.mode = Mode::Silent;
        }
        is_news
    }

    /// Whoever runs jobs is heard: it starts what it is given.
    pub(super) fn hear_life(&mut self) {
        let reaches = std::mem::take(&mut self.standing.reaches);
        if reaches {
            self.standing.pace.is_heard();
        }
        let was_silent = self.mode == Mode::Silent;
        if was_silent {
            self.mode = Mode::Taking;
        }
        if was_silent || reaches {
            self.look_again |= self.mode.is_running();
        }
    }
}
