//! The group of a job, and the keys that it uses, as options say them.

use chasquimq::{Error, Group, KeyLimit, Result};
use serde::{
    ser::{SerializeMap, SerializeSeq},
    Serialize, Serializer,
};

/// The last priority there is. Source: BullMQ `PRIORITY_LIMIT`.
pub const PRIORITY_LIMIT: u32 = (1 << 21) - 1;

/// Characters of a name at most.
const LONGEST_NAME: usize = 256;
/// Each key is looked at, and written, when the job starts.
const MOST_KEYS: usize = 8;
/// Whole numbers up to here are the same in JavaScript.
const MOST: i64 = (1 << 53) - 1;

pub(crate) fn check_group(group: &Group, has_place: bool) -> Result<()> {
    check_name(&group.id, "group.id")?;
    if !(0..=i64::from(PRIORITY_LIMIT)).contains(&group.priority) {
        return invalid(format!("group.priority must be from 0 to {PRIORITY_LIMIT}"));
    }
    if group.max_size > MOST as u64 {
        return invalid(format!("group.max_size must be at most {MOST}"));
    }
    if !group.weight.is_finite() || group.weight < 0.0 {
        return invalid(format!(
            "group.weight must be a finite number above 0, not {}",
            group.weight
        ));
    }
    match has_place {
        true => invalid("group goes with neither priority nor lifo: give group.priority"),
        false => Ok(()),
    }
}

pub(crate) fn check_limits(limits: &[KeyLimit]) -> Result<()> {
    if limits.len() > MOST_KEYS {
        return invalid(format!("limits must be {MOST_KEYS} at most"));
    }
    for (at, limit) in limits.iter().enumerate() {
        check_name(&limit.key, "a key of limits")?;
        let KeyLimit {
            key,
            max,
            duration_ms,
            cost,
        } = limit;
        for (number, what) in [(max, "max"), (duration_ms, "duration"), (cost, "cost")] {
            if !(1..=MOST).contains(number) {
                return invalid(format!("{what} of the limit of {key} must be from 1 to {MOST}"));
            }
        }
        if cost > max {
            return invalid(format!(
                "cost of the limit of {key} must be at most its max, {max}, not {cost}"
            ));
        }
        if limits[..at].iter().any(|other| other.key == *key) {
            return invalid(format!("limits must name {key} once"));
        }
    }
    Ok(())
}

/// As JavaScript counts characters.
fn check_name(name: &str, what: &str) -> Result<()> {
    match name.encode_utf16().count() {
        1..=LONGEST_NAME => Ok(()),
        _ => invalid(format!("{what} must be a text of 1 to {LONGEST_NAME} characters")),
    }
}

fn invalid<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(message.into()))
}

pub(crate) fn as_group<S: Serializer>(group: &Option<Group>, to: S) -> std::result::Result<S::Ok, S::Error> {
    let Some(group) = group else {
        return to.serialize_none();
    };
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("id", &group.id)?;
    if group.priority > 0 {
        map.serialize_entry("priority", &group.priority)?;
    }
    if group.max_size > 0 {
        map.serialize_entry("maxSize", &group.max_size)?;
    }
    if group.weight > 0.0 {
        map.serialize_entry("weight", &group.weight)?;
    }
    if let Some(strict) = group.strict {
        map.serialize_entry("order", if strict { "strict" } else { "fifo" })?;
    }
    map.end()
}

pub(crate) fn as_limits<S: Serializer>(limits: &[KeyLimit], to: S) -> std::result::Result<S::Ok, S::Error> {
    let mut all = to.serialize_seq(Some(limits.len()))?;
    for limit in limits {
        all.serialize_element(&AsLimit(limit))?;
    }
    all.end()
}

struct AsLimit<'a>(&'a KeyLimit);

impl Serialize for AsLimit<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let KeyLimit {
            key,
            max,
            duration_ms,
            cost,
        } = self.0;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("key", key)?;
        map.serialize_entry("max", max)?;
        map.serialize_entry("duration", duration_ms)?;
        if *cost != 1 {
            map.serialize_entry("cost", cost)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::AddOptions;

    fn in_group(group: Group) -> AddOptions {
        AddOptions {
            group: Some(group),
            ..AddOptions::default()
        }
    }

    fn limited(limits: &[KeyLimit]) -> AddOptions {
        AddOptions {
            limits: limits.to_vec(),
            ..AddOptions::default()
        }
    }

    #[test]
    fn they_are_written_as_the_facade_writes_them_and_read_back() {
        let group = Group {
            priority: 2,
            max_size: 5,
            weight: 1.5,
            strict: Some(true),
            ..Group::of("g")
        };
        let limits = vec![
            KeyLimit::of("a", 5, Duration::from_millis(60)),
            KeyLimit {
                cost: 2,
                ..KeyLimit::of("b", 9, Duration::from_secs(1))
            },
        ];
        let options = AddOptions {
            limits: limits.clone(),
            ..in_group(group.clone())
        };
        let parsed = options.to_job_options().expect("options");
        let text = concat!(
            r#"{"group":{"id":"g","priority":2,"maxSize":5,"weight":1.5,"order":"strict"},"#,
            r#""limits":[{"key":"a","max":5,"duration":60},{"key":"b","max":9,"duration":1000,"cost":2}]}"#,
        );
        assert_eq!(
            (parsed.text.as_str(), parsed.group, parsed.limits),
            (text, Some(group), limits)
        );
        let brief = in_group(Group::of("g")).to_job_options().expect("options");
        assert_eq!(brief.text, r#"{"group":{"id":"g"}}"#);
    }

    #[test]
    fn a_group_that_no_job_can_have_is_refused() {
        let group = || Group::of("g");
        let refused = [
            in_group(Group::of("")),
            in_group(Group::of("x".repeat(LONGEST_NAME + 1))),
            in_group(Group {
                priority: -1,
                ..group()
            }),
            in_group(Group {
                priority: i64::from(PRIORITY_LIMIT) + 1,
                ..group()
            }),
            in_group(Group {
                max_size: u64::MAX,
                ..group()
            }),
            in_group(Group {
                weight: f64::NAN,
                ..group()
            }),
            in_group(Group {
                weight: -1.0,
                ..group()
            }),
            AddOptions {
                priority: 1,
                ..in_group(group())
            },
            AddOptions {
                lifo: true,
                ..in_group(group())
            },
        ];
        for options in refused {
            assert!(
                matches!(options.to_job_options(), Err(Error::Invalid(_))),
                "{options:?}"
            );
        }
    }

    #[test]
    fn limits_that_no_job_can_keep_are_refused() {
        let limit = |key: &str| KeyLimit::of(key, 5, Duration::from_secs(1));
        let refused: [&[KeyLimit]; 6] = [
            &[limit("")],
            &[limit("a"), limit("a")],
            &[KeyLimit { cost: 6, ..limit("a") }],
            &[KeyLimit { cost: 0, ..limit("a") }],
            &[KeyLimit::of("a", 0, Duration::from_secs(1))],
            &[KeyLimit::of("a", 5, Duration::ZERO)],
        ];
        let many: Vec<_> = (0..=MOST_KEYS).map(|key| limit(&key.to_string())).collect();
        for limits in refused.into_iter().chain([many.as_slice()]) {
            assert!(
                matches!(limited(limits).to_job_options(), Err(Error::Invalid(_))),
                "{limits:?}"
            );
        }
        assert!(limited(&many[1..]).to_job_options().is_ok());
    }
}
