//! The caller's clock, as far as a worker's loop knows it: what is due, kept or recorded goes by that clock, and the loop sees it only
//! when it is told the time.

use std::time::{Duration, Instant};

use crate::clock::{is_foreign, system_now_ms, system_now_us, FOREIGN_AFTER_MS};

/// An offset that moves no time: what is sent is dated with the time of sending.
const UNKNOWN_OFFSET_US: i64 = -(1 << 52);
/// What two readings of one clock differ by at most, when a message lies between them.
const SAME_CLOCK_US: i64 = 2_000;
/// For how long two clocks are taken to keep the offset that was measured.
const MEASURED_FOR: Duration = Duration::from_secs(30);

/// What it says of itself.
#[derive(Debug, Default)]
pub(crate) struct ClientClock {
    // its clock is not the system's
    foreign: bool,
    // it is said to be another one, even where it agrees
    fake: bool,
    // epoch ms, when it was last read
    said_ms: u64,
}

/// What it said, and whether that is another clock than the system's: the loop may hear of it late.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    ms: u64,
    is_foreign: bool,
}

impl Reading {
    /// Of a clock that was read just now.
    pub(crate) fn new(ms: u64) -> Self {
        Self {
            at: Instant::now(),
            ms,
            is_foreign: is_foreign(ms),
        }
    }
}

/// How far its clock is ahead of the server's, as answers to steps tell it.
#[derive(Debug)]
pub(crate) struct Offset {
    // or less: a step is carried out at a time nobody knows yet
    us: i64,
    measured: Option<Instant>,
    // a step was answered so late, or by a clock so different, that it is to be measured again
    doubtful: bool,
    // of the latest step
    last_now_ms: u64,
}

impl Default for Offset {
    fn default() -> Self {
        Self {
            us: UNKNOWN_OFFSET_US,
            measured: None,
            doubtful: false,
            last_now_ms: 0,
        }
    }
}

impl ClientClock {
    /// Its clock is said to be a fake one, or not.
    pub(crate) fn fakes(&mut self, fake: bool) {
        self.fake = fake;
    }

    /// Its clock was read, perhaps a while ago.
    pub(crate) fn says(&mut self, reading: Reading) {
        self.foreign = self.fake || reading.is_foreign;
        self.said_ms = reading.ms;
    }

    /// Its clock, as far as it is known, epoch ms.
    pub(crate) fn now_ms(&self) -> u64 {
        match self.foreign {
            true => self.said_ms,
            false => system_now_ms(),
        }
    }

    /// Whether its clock is one of its own, which must be asked for the time.
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// The offset that a step is sent with, us.
    pub(crate) fn offset_us(&self, measured: &Offset) -> i64 {
        if self.foreign {
            UNKNOWN_OFFSET_US
        } else {
            measured.us
        }
    }
}

impl Offset {
    /// In us.
    pub(crate) fn us(&self) -> i64 {
        self.us
    }

    /// Whether it is to be measured again, before what it dates is sent.
    pub(crate) fn is_doubtful(&self, now: Instant) -> bool {
        self.doubtful || self.measured.is_none_or(|at| now >= at + MEASURED_FOR)
    }

    /// The date of what ended at `now_ms`: no job ends before it started, and what is fetched starts at a time that is known only roughly.
    pub(crate) fn date(&self, now_ms: u64) -> u64 {
        not_before(now_ms, self.last_now_ms)
    }

    /// A step was carried out at `now_ms`.
    pub(crate) fn stepped(&mut self, now_ms: u64) {
        self.last_now_ms = now_ms;
    }

    /// What was sent at `sent_us` is answered, with the server's clock.
    pub(crate) fn measure(&mut self, server_us: i64, sent_us: i64) {
        self.us = offset_us(server_us, sent_us);
        self.measured = Some(Instant::now());
        self.doubtful = false;
    }

    /// When a step was carried out whose answer, perhaps read late, tells the server's clock; 0 = it tells none.
    pub(crate) fn carried_out(&mut self, server_us: i64) -> Instant {
        let now = Instant::now();
        let late = match server_us {
            0 => Duration::ZERO,
            server_us => self.measure_late(server_us),
        };
        now.checked_sub(late).unwrap_or(now)
    }

    /// A step that was sent at a time that is not known is answered, perhaps a while ago. Gives how long ago, as it seems.
    pub(crate) fn measure_late(&mut self, server_us: i64) -> Duration {
        let late_us;
        (self.us, late_us) = offset_and_delay_us(server_us, self.us);
        self.doubtful |= late_us > 0;
        Duration::from_micros(late_us as u64)
    }
}

/// How far this machine's clock is ahead of a server's that was read as `server_us` between `sent_us` and now; 0 when they may be one
/// clock. It is never more than that: what is dated with it does not lie in the future.
fn offset_us(server_us: i64, sent_us: i64) -> i64 {
    let (least, most) = (
        sent_us.saturating_sub(server_us),
        system_now_us().saturating_sub(server_us),
    );
    if least <= 0 && most >= 0 {
        0
    } else {
        least
    }
}

/// The same offset, measured with an answer to what was sent at a time that is not known, against what it was before: the offset that
/// is now certain, and how late the answer was read, or seems to be.
fn offset_and_delay_us(server_us: i64, before_us: i64) -> (i64, i64) {
    // whatever delays an answer makes this clock seem to be ahead
    let most_us = system_now_us().saturating_sub(server_us);
    let measured_us = if (0..SAME_CLOCK_US).contains(&most_us) {
        0
    } else {
        most_us
    };
    let late_us = measured_us.saturating_sub(before_us);
    (
        measured_us.min(before_us),
        if late_us > SAME_CLOCK_US { late_us } else { 0 },
    )
}

/// A time, moved to the one before where it lies just behind. A clock that was set back is taken as it is.
fn not_before(now_ms: u64, before_ms: u64) -> u64 {
    if before_ms > now_ms && before_ms - now_ms <= FOREIGN_AFTER_MS {
        before_ms
    } else {
        now_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_read_late_sets_no_clock_ahead() {
        let now_us = system_now_us();
        assert_eq!(offset_us(now_us - 50_000, now_us - 51_000), 0);
        // a second ahead of the server, or behind
        assert_eq!(offset_us(now_us - 1_050_000, now_us - 51_000), 999_000);
        assert_eq!(offset_us(now_us + 3_600_000_000, now_us - 51_000), -3_600_051_000);
    }

    #[test]
    fn an_answer_to_a_wait_that_is_read_late_makes_the_offset_doubtful() {
        let mut offset = Offset::default();
        let now_us = system_now_us();
        offset.measure(now_us, now_us);
        assert!(offset.measure_late(now_us - 1_000).is_zero());
        assert!(!offset.is_doubtful(Instant::now()));
        assert!(offset.measure_late(now_us - 50_000) >= Duration::from_millis(50));
        assert_eq!((offset.is_doubtful(Instant::now()), offset.us()), (true, 0));
        offset.measure(now_us, now_us);
        assert!(!offset.is_doubtful(Instant::now()));
    }

    #[test]
    fn an_offset_that_was_measured_long_ago_is_doubtful() {
        let mut offset = Offset::default();
        assert!(offset.is_doubtful(Instant::now()));
        let now_us = system_now_us();
        offset.measure(now_us, now_us);
        assert!(!offset.is_doubtful(Instant::now()));
        assert!(offset.is_doubtful(Instant::now() + MEASURED_FOR));
    }

    #[test]
    fn a_clock_of_its_own_is_not_guessed() {
        let (mut clock, mut offset) = (ClientClock::default(), Offset::default());
        let now_us = system_now_us();
        offset.measure(now_us, now_us);
        clock.says(Reading::new(1000));
        assert_eq!(
            (clock.is_foreign(), clock.offset_us(&offset)),
            (true, UNKNOWN_OFFSET_US)
        );
        clock.says(Reading::new(now_us as u64 / 1000));
        assert_eq!((clock.is_foreign(), clock.offset_us(&offset)), (false, 0));
        // one that stands still agrees with the system's at first
        clock.fakes(true);
        clock.says(Reading::new(now_us as u64 / 1000));
        assert!(clock.is_foreign());
        clock.says(Reading::new(2000));
        assert_eq!(clock.now_ms(), 2000);
    }

    #[test]
    fn a_clock_that_lies_just_behind_is_moved_and_one_set_back_is_not() {
        assert_eq!(not_before(1000, 900), 1000);
        assert_eq!(not_before(1000, 1004), 1004);
        assert_eq!(not_before(1000, 100_000), 1000);
    }
}
