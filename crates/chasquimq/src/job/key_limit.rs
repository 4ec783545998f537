//! Keys of which a job uses something when it starts, within their limits (`lua/rules/key_limits.lua`).

use std::time::Duration;

use serde_json::Value;

use super::{json::number, msgpack::Packer};

/// One of the job option `limits`.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyLimit {
    /// Names what is limited, for all jobs of the queue.
    pub key: String,
    /// What may be used in a window.
    pub max: i64,
    /// Length of a window, which begins with the first start in it.
    pub duration_ms: i64,
    /// What one start uses, at most `max`.
    pub cost: i64,
}

impl KeyLimit {
    /// `max` starts in a window; whole milliseconds.
    pub fn of(key: impl Into<String>, max: u32, window: Duration) -> Self {
        Self {
            key: key.into(),
            max: max.into(),
            duration_ms: i64::try_from(window.as_millis()).unwrap_or(i64::MAX),
            cost: 1,
        }
    }

    /// Those of the option that name a key, and fit; the facade refuses others.
    pub(super) fn all_from_json(value: &Value) -> Vec<Self> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Self::from_json)
            .collect()
    }

    fn from_json(value: &Value) -> Option<Self> {
        let of = |name: &str| value.get(name).and_then(number).map(|number| number as i64);
        let limit = Self {
            key: value.get("key")?.as_str()?.to_owned(),
            max: of("max")?,
            duration_ms: of("duration")?,
            cost: of("cost").unwrap_or(1),
        };
        (limit.cost >= 1 && limit.cost <= limit.max && limit.duration_ms >= 1).then_some(limit)
    }

    /// When a job expires, and its limits, as `lua/rules/terms.lua` takes them.
    pub(super) fn pack_terms(expires: i64, limits: &[Self], packer: &mut Packer) {
        if limits.is_empty() {
            packer.int(expires);
            return;
        }
        packer.array(2).int(expires).array(limits.len());
        for limit in limits {
            packer.array(4).str(&limit.key).int(limit.max);
            // scripts count times in doubles
            packer.int(limit.duration_ms.min(1 << 53)).int(limit.cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_that_a_job_can_keep() {
        let of = |text: &str| KeyLimit::all_from_json(&serde_json::from_str(text).expect("json"));
        let limit = |key: &str, cost| KeyLimit {
            key: key.into(),
            max: 5,
            duration_ms: 60,
            cost,
        };
        let both = of(r#"[{"key":"a","max":5,"duration":60},{"key":"b","max":5,"duration":60,"cost":5}]"#);
        assert_eq!(both, [limit("a", 1), limit("b", 5)]);
        for none in [
            r#"{}"#,
            r#"[{"key":"a","max":5}]"#,
            r#"[{"key":"a","max":5,"duration":60,"cost":6}]"#,
            r#"[{"key":1,"max":5,"duration":60}]"#,
        ] {
            assert_eq!(of(none), []);
        }
    }
}
