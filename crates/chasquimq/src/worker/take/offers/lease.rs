//! The worker's lease, as far as its renewals are known here.

use std::time::Duration;

use crate::clock::Moment;

/// A lease may have been renewed a twentieth of its time before the step that is thought to have done so (`lua/states/lease.lua`).
const SURE: f64 = 0.95;

#[derive(Debug)]
pub(super) struct Lease {
    duration: Duration,
    // when it was surely renewed last
    renewed: Option<Moment>,
    // how often it may have lapsed before that
    lapses: u32,
}

impl Lease {
    pub(super) fn new(duration: Duration) -> Self {
        Self {
            duration: duration.mul_f64(SURE),
            renewed: None,
            lapses: 0,
        }
    }

    /// Whether it surely lasts at this moment.
    pub(super) fn lasts(&self, moment: &Moment) -> bool {
        self.renewed
            .is_none_or(|renewed| moment.since(&renewed) < self.duration)
    }

    /// It was renewed at `moment`, or between that and `told`. False where it may have lapsed before.
    pub(super) fn renew(&mut self, moment: Moment, told: &Moment) -> bool {
        let lasted = self.lasts(told);
        if !lasted {
            self.lapse();
        }
        self.renewed = Some(moment);
        lasted
    }

    /// It is gone, whatever is thought of its time.
    pub(super) fn lapse(&mut self) {
        self.lapses = self.lapses.wrapping_add(1);
    }

    /// Another number for each that follows one which may have lapsed; `None` while it may be over.
    pub(super) fn number(&self) -> Option<u32> {
        self.lasts(&Moment::now()).then_some(self.lapses)
    }
}
