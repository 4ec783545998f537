//! By when a job is to have started.

use serde_json::Value;

use super::json::number;
use crate::clock::millis;

/// Longer than that no job waits: a larger number is a time since 1970, which is how the facade tells a Date (`src/options/expiry.ts`).
const LONGEST_WAIT_MS: f64 = 1e11;

/// `expireAfter`, as [`super::options::JobOptions::expires`].
pub(super) fn from_json(value: &Value) -> i64 {
    let value = number(value).unwrap_or(0.0);
    let ms = millis(value) as i64;
    if value > LONGEST_WAIT_MS {
        ms
    } else {
        -ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_expires_after_a_while_or_at_a_time() {
        let expires = |text: &str| from_json(&serde_json::from_str(text).expect("json"));
        assert_eq!(expires("1500"), -1500);
        assert_eq!(expires("1790000000000"), 1_790_000_000_000);
        assert_eq!([expires("null"), expires("0")], [0, 0]);
    }
}
