//! Whose time it is.

use std::time::{SystemTime, UNIX_EPOCH};

// further apart than calls take: the caller's clock is not the system's
const FOREIGN_AFTER_MS: u64 = 250;

/// This machine's clock, epoch ms.
pub fn system_now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

/// True when a caller's clock, read just now, is not this machine's: a fake clock in a test, for instance.
pub fn is_foreign(caller_now_ms: u64) -> bool {
    system_now_ms().abs_diff(caller_now_ms) > FOREIGN_AFTER_MS
}
