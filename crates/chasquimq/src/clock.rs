//! Whose time it is.

use std::time::{SystemTime, UNIX_EPOCH};

// further apart than calls take: the caller's clock is not the system's
const FOREIGN_AFTER_MS: u64 = 250;

/// This machine's clock, epoch ms.
pub fn system_now_ms() -> u64 {
    system_now_us() as u64 / 1000
}

/// This machine's clock, in microseconds since the epoch.
pub fn system_now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}

// what two readings of one clock differ by at most, when a message lies between them
const SAME_CLOCK_US: i64 = 2_000;

/// How far this machine's clock is ahead of a server's that was read as `server_us` between `sent_us` and now; 0 when they may be one
/// clock. It is never more than that: what is dated with it does not lie in the future.
pub fn offset_us(server_us: i64, sent_us: i64) -> i64 {
    let (least, most) = (sent_us - server_us, system_now_us() - server_us);
    if least <= 0 && most >= 0 {
        0
    } else {
        least
    }
}

/// The same offset, measured with an answer to what was sent at a time that is not known, against what it was before: the offset that
/// is now certain, and how late the answer was read, or seems to be.
pub fn offset_and_delay_us(server_us: i64, before_us: i64) -> (i64, i64) {
    // whatever delays an answer makes this clock seem to be ahead
    let most_us = system_now_us() - server_us;
    let measured_us = if (0..SAME_CLOCK_US).contains(&most_us) {
        0
    } else {
        most_us
    };
    let late_us = measured_us - before_us;
    (
        measured_us.min(before_us),
        if late_us > SAME_CLOCK_US { late_us } else { 0 },
    )
}

/// A reading of the caller's clock, moved to the one before where it lies just behind: a step behind a wait knows that clock only roughly,
/// and no job ends before it started. A clock that was set back is taken as it is.
pub fn not_before(now_ms: u64, before_ms: u64) -> u64 {
    if before_ms > now_ms && before_ms - now_ms <= FOREIGN_AFTER_MS {
        before_ms
    } else {
        now_ms
    }
}

/// True when a caller's clock, read just now, is not this machine's: a fake clock in a test, for instance.
pub fn is_foreign(caller_now_ms: u64) -> bool {
    system_now_ms().abs_diff(caller_now_ms) > FOREIGN_AFTER_MS
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
    fn a_clock_that_lies_just_behind_is_moved_and_one_set_back_is_not() {
        assert_eq!(not_before(1000, 900), 1000);
        assert_eq!(not_before(1000, 1004), 1004);
        assert_eq!(not_before(1000, 100_000), 1000);
    }
}
