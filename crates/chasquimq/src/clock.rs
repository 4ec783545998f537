//! Whose time it is.

use std::time::{SystemTime, UNIX_EPOCH};

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
