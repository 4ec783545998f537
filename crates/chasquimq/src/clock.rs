//! Times: whose they are, and how long.

use std::time::{SystemTime, UNIX_EPOCH};

/// Longest delay, and latest time, in ms: the greatest number to which JavaScript and Lua count without a gap, 285,000 years.
///
/// What is longer, infinite say, is taken for it, and never overflows: a job that was to wait for ever must not start at once.
/// The scores of delayed jobs (`lua/states/delayed.lua`) are 4096 times as large, and doubles, too. Past the year 2039 they have
/// fewer bits left for the order within one millisecond, and the time itself stays exact.
pub const LONGEST_MS: u64 = (1 << 53) - 1;

/// A number of milliseconds, or a time, as JavaScript has it: below 0 and NaN are 0.
pub fn millis(ms: f64) -> u64 {
    (ms as u64).min(LONGEST_MS)
}

/// When a job is due, epoch ms.
pub(crate) fn due_ms(timestamp: u64, delay_ms: u64) -> u64 {
    timestamp.min(LONGEST_MS) + delay_ms.min(LONGEST_MS)
}

/// Readings that are further apart than this, which is longer than calls take, are not of one clock.
pub const FOREIGN_AFTER_MS: u64 = 250;

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

/// True when a caller's clock, read just now, is not this machine's: a fake clock in a test, for instance.
pub fn is_foreign(caller_now_ms: u64) -> bool {
    system_now_ms().abs_diff(caller_now_ms) > FOREIGN_AFTER_MS
}
