//! Retention of finished jobs.

use std::time::Duration;

use serde_json::Value;

use super::json::number;
use crate::clock::LONGEST_MS;

/// Retention of finished jobs. Source: BullMQ `KeepJobs`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Keep {
    /// Newest jobs kept; -1 = all, 0 = none.
    pub count: i64,
    /// Seconds a job is kept; -1 = for ever.
    pub age: f64,
    /// Jobs removed by age at most, per finished job.
    pub limit: u32,
}

impl Keep {
    /// Keeps everything.
    pub const ALL: Keep = Keep {
        count: -1,
        age: -1.0,
        limit: 1000,
    };
    /// Keeps nothing.
    pub const NONE: Keep = Keep {
        count: 0,
        age: -1.0,
        limit: 1000,
    };

    /// Keeps the newest `count` jobs.
    pub const fn newest(count: u32) -> Self {
        Self {
            count: count as i64,
            ..Self::ALL
        }
    }

    /// Keeps jobs that ended less than `age` ago; whole seconds.
    pub const fn younger_than(age: Duration) -> Self {
        Self {
            age: age.as_secs() as f64,
            ..Self::ALL
        }
    }

    /// Reads the JSON text of a retention; what is none keeps everything.
    pub fn from_text(text: &str) -> Self {
        serde_json::from_str(text).map_or(Keep::ALL, |value| Keep::from_json(&value))
    }

    /// Reads a boolean, a number or a `{ count, age, limit }` object, in which fractions count for nothing and texts may be numbers.
    pub fn from_json(value: &Value) -> Self {
        match value {
            Value::Bool(true) => Keep::NONE,
            Value::Number(_) | Value::String(_) => Keep {
                count: number(value).map_or(-1, to_count),
                ..Keep::ALL
            },
            Value::Object(map) => Keep {
                count: map.get("count").and_then(number).map_or(-1, to_count),
                // below 0 it is over before it began: none is kept
                age: map.get("age").and_then(number).map_or(-1.0, |age| age.max(0.0)),
                limit: map.get("limit").and_then(number).map_or(1000, |limit| limit as u32),
            },
            _ => Keep::ALL,
        }
    }
}

/// A number of jobs to keep; below 0 all.
fn to_count(count: f64) -> i64 {
    (count.max(-1.0) as i64).min(LONGEST_MS as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_takes_every_number() {
        let keep = |text: &str| Keep::from_json(&serde_json::from_str(text).expect("json"));
        assert_eq!(keep("1.5").count, 1);
        assert_eq!(keep("1e300").count, LONGEST_MS as i64);
        assert_eq!(keep(r#""3""#).count, 3);
        assert_eq!(keep(r#""x""#), Keep::ALL);
        assert_eq!(
            keep(r#"{"count":"2","age":"7.5"}"#),
            Keep {
                count: 2,
                age: 7.5,
                limit: 1000
            }
        );
        assert_eq!(
            keep(r#"{"count":-1e300,"age":-5,"limit":9007199254740992}"#),
            Keep {
                count: -1,
                age: 0.0,
                limit: u32::MAX
            }
        );
    }

    #[test]
    fn retention_takes_every_form() {
        let keep = |text: &str| Keep::from_json(&serde_json::from_str(text).expect("json"));
        assert_eq!(keep("true"), Keep::NONE);
        assert_eq!(keep("false"), Keep::ALL);
        assert_eq!(keep("3").count, 3);
        assert_eq!(keep("-7"), Keep::ALL);
        assert_eq!(
            keep(r#"{"age":7,"limit":2}"#),
            Keep {
                count: -1,
                age: 7.0,
                limit: 2
            }
        );
    }
}
