//! Whether and when a failed job is tried again. Pure: time and chance come in as arguments.

use crate::{
    clock::millis,
    job::options::{Backoff, JobOptions},
};

/// What becomes of a job whose try failed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Retry {
    /// No tries left, or none wanted.
    Never,
    /// Tried again at once.
    Now,
    /// Tried again after this many milliseconds, at most [`crate::clock::LONGEST_MS`].
    After(u64),
}

/// How often a job was tried, as a try of it ends.
#[derive(Debug, Clone, Copy)]
pub struct Tries {
    /// Tries that have ended, this one included.
    pub made: u32,
    /// Times it became active.
    pub started: u32,
    /// Starts it may have; 0 = no matter.
    pub most_starts: u32,
}

impl Tries {
    /// Whether another one may follow, of as many as the job's options want.
    pub fn leave_another(self, wanted: u32) -> bool {
        let is_worn_out = self.most_starts > 0 && self.started >= self.most_starts;
        self.made < wanted && !is_worn_out
    }
}

/// Decides a failed try. `custom_delay_ms` is what a strategy of the user's answered: -1 = never.
/// `random` is in 0..1. Source: BullMQ 6.7 `Job#moveToFailed`, `Backoffs`.
pub fn decide(
    options: &JobOptions,
    tries: Tries,
    unrecoverable: bool,
    custom_delay_ms: Option<f64>,
    random: f64,
) -> Retry {
    if unrecoverable || !tries.leave_another(options.attempts) {
        return Retry::Never;
    }
    let delay_ms = match (custom_delay_ms, &options.backoff) {
        (Some(delay_ms), _) => delay_ms,
        (None, Some(backoff)) => builtin_delay(backoff, tries.made, random),
        (None, None) => 0.0,
    };
    if delay_ms == -1.0 {
        Retry::Never
    } else if delay_ms.is_nan() || (0.0..1.0).contains(&delay_ms) {
        Retry::Now
    } else {
        // one that lies in the past is delayed, and due
        Retry::After(millis(delay_ms.max(0.0)))
    }
}

fn builtin_delay(backoff: &Backoff, attempts_made: u32, random: f64) -> f64 {
    let delay_ms = match backoff.kind.as_str() {
        "exponential" => (2f64.powi(attempts_made as i32 - 1) * backoff.delay_ms).round(),
        _ => backoff.delay_ms,
    };
    if backoff.jitter > 0.0 {
        let least = delay_ms * (1.0 - backoff.jitter);
        (random * delay_ms * backoff.jitter + least).floor()
    } else {
        delay_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> JobOptions {
        JobOptions::parse(text).expect("options")
    }

    fn tried(made: u32) -> Tries {
        Tries {
            made,
            started: made,
            most_starts: 0,
        }
    }

    #[test]
    fn a_job_without_attempts_fails_at_once() {
        assert_eq!(decide(&options("{}"), tried(1), false, None, 0.5), Retry::Never);
        assert_eq!(
            decide(&options(r#"{"attempts":1}"#), tried(1), false, None, 0.5),
            Retry::Never
        );
    }

    #[test]
    fn no_backoff_means_at_once() {
        assert_eq!(
            decide(&options(r#"{"attempts":2}"#), tried(1), false, None, 0.5),
            Retry::Now
        );
        assert_eq!(
            decide(&options(r#"{"attempts":2}"#), tried(2), false, None, 0.5),
            Retry::Never
        );
        assert_eq!(
            decide(&options(r#"{"attempts":2}"#), tried(1), true, None, 0.5),
            Retry::Never
        );
    }

    #[test]
    fn a_job_that_was_started_too_often_is_worn_out() {
        let started = |started, most_starts| Tries {
            made: 1,
            started,
            most_starts,
        };
        assert!(started(2, 3).leave_another(9) && started(9, 0).leave_another(9));
        assert!(!started(3, 3).leave_another(9) && !started(1, 3).leave_another(1));
        let worn_out = decide(&options(r#"{"attempts":9}"#), started(3, 3), false, Some(5.0), 0.5);
        assert_eq!(worn_out, Retry::Never);
    }

    #[test]
    fn exponential_doubles() {
        let options = options(r#"{"attempts":9,"backoff":{"type":"exponential","delay":100}}"#);
        let delays: Vec<Retry> = (1..5)
            .map(|made| decide(&options, tried(made), false, None, 0.5))
            .collect();
        assert_eq!(
            delays,
            [
                Retry::After(100),
                Retry::After(200),
                Retry::After(400),
                Retry::After(800)
            ]
        );
    }

    #[test]
    fn jitter_stays_in_its_range() {
        let options = options(r#"{"attempts":9,"backoff":{"type":"fixed","delay":1000,"jitter":0.25}}"#);
        assert_eq!(decide(&options, tried(1), false, None, 0.0), Retry::After(750));
        assert_eq!(decide(&options, tried(1), false, None, 0.999), Retry::After(999));
    }

    #[test]
    fn what_is_endless_is_long() {
        use crate::clock::LONGEST_MS;
        let options = options(r#"{"attempts":5000,"backoff":{"type":"exponential","delay":"200"}}"#);
        assert_eq!(decide(&options, tried(1), false, None, 0.5), Retry::After(200));
        assert_eq!(
            decide(&options, tried(2000), false, None, 0.5),
            Retry::After(LONGEST_MS)
        );
        for endless in [f64::INFINITY, 1e300, 2f64.powi(64)] {
            assert_eq!(
                decide(&options, tried(1), false, Some(endless), 0.5),
                Retry::After(LONGEST_MS)
            );
        }
        for none in [f64::NAN, 0.0] {
            assert_eq!(decide(&options, tried(1), false, Some(none), 0.5), Retry::Now);
        }
        for past in [f64::NEG_INFINITY, -5.0] {
            assert_eq!(decide(&options, tried(1), false, Some(past), 0.5), Retry::After(0));
        }
    }

    #[test]
    fn a_strategy_of_the_user_rules() {
        let options = options(r#"{"attempts":9,"backoff":{"type":"mine"}}"#);
        assert_eq!(decide(&options, tried(1), false, Some(-1.0), 0.5), Retry::Never);
        assert_eq!(decide(&options, tried(1), false, Some(0.0), 0.5), Retry::Now);
        assert_eq!(decide(&options, tried(1), false, Some(12.0), 0.5), Retry::After(12));
    }
}
