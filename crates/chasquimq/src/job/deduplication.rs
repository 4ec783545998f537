//! Which adds yield to others.

use serde_json::Value;

use super::{json::is_truthy, msgpack::Packer};

/// Which adds yield to a job that exists: while a job owns the id, others of that id are not added.
///
/// Without a `ttl_ms` the job owns the id until it has finished for good or is removed; with one until the time is over or it is
/// removed. Source: BullMQ `DeduplicationOptions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deduplication {
    /// What jobs are compared by.
    pub id: String,
    /// Milliseconds for which the id is owned, on the server's clock; 0 = until the job has finished.
    pub ttl_ms: u64,
    /// An add that yields starts the time anew.
    pub extend: bool,
    /// An owner that is still delayed is removed, and the new job added.
    pub replace: bool,
    /// An owner that is still delayed becomes due when the new job would have been. Not with `replace`.
    pub reschedule: bool,
    /// What is added while the owner is active is kept, the latest only, and added when the owner has finished. There is no
    /// `ttl_ms` then.
    pub keep_last_if_active: bool,
    /// The id is owned until the job starts, at the longest.
    pub until_started: bool,
}

impl Deduplication {
    // a server takes no expiry beyond its own clock's range
    const MAX_TTL_MS: f64 = 9e15;

    /// Until the job has finished for good, or is removed.
    pub fn of(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// As `lua/rules/deduplication.lua` takes it.
    pub(crate) fn pack(&self, packer: &mut Packer) {
        packer
            .array(6 + usize::from(self.until_started))
            .str(&self.id)
            .int(self.ttl_ms as i64);
        for flag in [self.extend, self.replace, self.reschedule, self.keep_last_if_active] {
            packer.int(i64::from(flag));
        }
        if self.until_started {
            packer.int(1);
        }
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let flag = |name: &str| value.get(name).is_some_and(is_truthy);
        let id = match value.get("id")? {
            Value::String(id) => id.clone(),
            Value::Number(id) => id.to_string(),
            _ => return None,
        };
        let keep_last_if_active = flag("keepLastIfActive");
        let ttl_ms = value.get("ttl").and_then(Value::as_f64).unwrap_or(0.0);
        let ttl_ms = ttl_ms.clamp(0.0, Self::MAX_TTL_MS) as u64;
        Some(Self {
            id,
            ttl_ms: if keep_last_if_active { 0 } else { ttl_ms },
            // who gives no time extends none
            extend: flag("extend") && ttl_ms > 0,
            replace: flag("replace"),
            reschedule: flag("reschedule"),
            keep_last_if_active,
            until_started: value.get("until").and_then(Value::as_str) == Some("started"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::options::JobOptions;

    #[test]
    fn a_deduplication_takes_what_javascript_takes() {
        let parse = |text: &str| {
            JobOptions::parse(&format!(r#"{{"deduplication":{text}}}"#)).map(|options| options.deduplication)
        };
        assert_eq!(
            parse(r#"{"id":5,"ttl":-3}"#).expect("options"),
            Some(Deduplication::of("5"))
        );
        let all = parse(r#"{"id":"a","ttl":7,"extend":1,"replace":true,"reschedule":0}"#).expect("options");
        let expected = Deduplication {
            ttl_ms: 7,
            extend: true,
            replace: true,
            ..Deduplication::of("a")
        };
        assert_eq!(all, Some(expected));
        let last = parse(r#"{"id":"a","ttl":7,"keepLastIfActive":true}"#).expect("options");
        assert_eq!(
            last.map(|last| (last.ttl_ms, last.keep_last_if_active)),
            Some((0, true))
        );
        let started = parse(r#"{"id":"a","until":"started"}"#).expect("options");
        assert!(started.is_some_and(|options| options.until_started));
        let extends = |text| parse(text).expect("options").is_some_and(|options| options.extend);
        assert!(extends(r#"{"id":"a","ttl":7,"extend":true,"keepLastIfActive":true}"#));
        assert!(!extends(r#"{"id":"a","extend":true,"keepLastIfActive":true}"#));
    }
}
