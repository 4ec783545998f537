//! Options of jobs and workers, parsed from the JSON text that BullMQ users write.

use std::time::Duration;

use serde::{de::IgnoredAny, Deserialize};
use serde_json::Value;

use super::{
    deduplication::Deduplication,
    expiry,
    group::Group,
    json::{is_truthy, number},
    keep::Keep,
    key_limit::KeyLimit,
    msgpack::Packer,
    parent::Policy,
};
use crate::clock::millis;

/// Options of a job that the engine acts on. The text itself is stored with the job, untouched.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawJobOptions {
    job_id: Option<String>,
    timestamp: Option<Value>,
    delay: Option<Value>,
    attempts: Option<Value>,
    backoff: Option<Value>,
    priority: Option<Value>,
    lifo: Option<Value>,
    group: Option<Value>,
    remove_on_complete: Option<Value>,
    remove_on_fail: Option<Value>,
    deduplication: Option<Value>,
    expire_after: Option<Value>,
    limits: Option<Value>,
    fail_parent_on_failure: Option<Value>,
    continue_parent_on_failure: Option<Value>,
    ignore_dependency_on_failure: Option<Value>,
    remove_dependency_on_failure: Option<Value>,
}

impl RawJobOptions {
    fn policy(&self) -> Policy {
        let policies = [
            (&self.fail_parent_on_failure, Policy::Fail),
            (&self.continue_parent_on_failure, Policy::Continue),
            (&self.ignore_dependency_on_failure, Policy::Ignore),
            (&self.remove_dependency_on_failure, Policy::Remove),
        ];
        let chosen = policies
            .into_iter()
            .find(|(option, _)| option.as_ref().is_some_and(is_truthy));
        chosen.map_or(Policy::Wait, |(_, policy)| policy)
    }
}

/// Options of a job, parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOptions {
    /// The options as the user wrote them, JSON.
    pub text: String,
    /// Custom id.
    pub job_id: Option<String>,
    /// Creation time, epoch ms; the caller's clock if absent or 0.
    pub timestamp: Option<u64>,
    /// Milliseconds from the timestamp to the due time; 0 = none.
    pub delay_ms: u64,
    /// Total number of tries; 0 behaves as 1.
    pub attempts: u32,
    /// Pause between tries.
    pub backoff: Option<Backoff>,
    /// Starts when no job without a priority waits, the lower numbers first; 0 = none.
    pub priority: i64,
    /// Put the job at the head of the waiting list.
    pub lifo: bool,
    /// Starts in a turn of this group; `priority` and `lifo` say nothing then.
    pub group: Option<Group>,
    /// Retention once completed; `None` = the worker's.
    pub remove_on_complete: Option<Keep>,
    /// Retention once failed for good; `None` = the worker's.
    pub remove_on_fail: Option<Keep>,
    /// Yields to a job that exists.
    pub deduplication: Option<Deduplication>,
    /// It fails for good unless it has started by then, epoch ms; below 0: so many ms after it was added, or, of a scheduler's job, is due. 0 = never.
    pub expires: i64,
    /// Keys that each start of it uses.
    pub limits: Vec<KeyLimit>,
    /// What its failure does to its parent, if it has one.
    pub on_failure: Policy,
}

impl JobOptions {
    /// Parses the JSON text of a job's options.
    /// # Errors
    /// [`crate::Error::Invalid`] when it is not an object, or an option is of another type than BullMQ's.
    pub fn parse(text: &str) -> crate::Result<Self> {
        if let Some(delay_ms) = delay_alone(text) {
            return Ok(Self {
                delay_ms,
                ..Self::none(text)
            });
        }
        let raw: RawJobOptions = serde_json::from_str(text)
            .or_else(|error| match without_half_pairs(text) {
                Some(text) => serde_json::from_str(&text),
                None => Err(error),
            })
            .map_err(|error| crate::Error::Invalid(format!("job options: {error}")))?;
        Ok(Self {
            on_failure: raw.policy(),
            text: text.to_owned(),
            job_id: raw.job_id.filter(|id| !id.is_empty()),
            timestamp: raw
                .timestamp
                .as_ref()
                .and_then(number)
                .filter(|&ms| ms != 0.0)
                .map(millis),
            delay_ms: raw.delay.as_ref().and_then(number).map_or(0, millis),
            // one more try as long as fewer were made: half a try is one
            attempts: raw
                .attempts
                .as_ref()
                .and_then(number)
                .map_or(0, |attempts| attempts.ceil() as u32),
            backoff: raw.backoff.as_ref().and_then(Backoff::from_json),
            priority: raw
                .priority
                .as_ref()
                .and_then(number)
                .map_or(0, |priority| priority as i64),
            // as Lua takes it: 0 and texts are true
            lifo: raw
                .lifo
                .is_some_and(|lifo| !matches!(lifo, Value::Null | Value::Bool(false))),
            group: raw.group.as_ref().and_then(Group::from_json),
            remove_on_complete: raw.remove_on_complete.as_ref().map(Keep::from_json),
            remove_on_fail: raw.remove_on_fail.as_ref().map(Keep::from_json),
            deduplication: raw.deduplication.as_ref().and_then(Deduplication::from_json),
            expires: raw.expire_after.as_ref().map_or(0, expiry::from_json),
            limits: raw.limits.as_ref().map_or_else(Vec::new, KeyLimit::all_from_json),
        })
    }

    /// Those of a stored job. They were parsed when it was added: an object that cannot be read now says nothing.
    /// # Errors
    /// [`crate::Error::Malformed`] when it is no object.
    pub fn of_stored(text: &str) -> crate::Result<Self> {
        Self::parse(text).or_else(|error| match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) if text.trim_start().starts_with('{') => Ok(Self::none(text)),
            _ => Err(crate::Error::malformed("a job's options", error)),
        })
    }

    /// Options that say nothing, with this text.
    pub fn none(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            job_id: None,
            timestamp: None,
            delay_ms: 0,
            attempts: 0,
            backoff: None,
            priority: 0,
            lifo: false,
            group: None,
            remove_on_complete: None,
            remove_on_fail: None,
            deduplication: None,
            expires: 0,
            limits: Vec::new(),
            on_failure: Policy::Wait,
        }
    }

    /// True for a job that can lie in a frame: one without an id of its own that just waits.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.job_id.is_none() && self.just_waits()
    }

    /// The priority by which it is ordered among its like: of a job with a group that in the group.
    pub(crate) fn rank(&self) -> i64 {
        self.group.as_ref().map_or(self.priority, |group| group.priority)
    }

    /// How many values [`JobOptions::pack_more`] packs.
    pub(crate) fn more(&self) -> usize {
        if self.has_terms() {
            2
        } else {
            usize::from(self.group.is_some())
        }
    }

    /// Its group and its terms, behind what scripts are told of each job that may have them.
    pub(crate) fn pack_more(&self, packer: &mut Packer) {
        match &self.group {
            Some(group) => group.pack(packer),
            None if self.has_terms() => drop(packer.nil()),
            None => {}
        }
        if self.has_terms() {
            self.pack_terms(packer);
        }
    }

    /// Whether it is told when the job may start.
    pub(crate) fn has_terms(&self) -> bool {
        self.expires != 0 || !self.limits.is_empty()
    }

    /// As `lua/rules/terms.lua` takes them.
    pub(crate) fn pack_terms(&self, packer: &mut Packer) {
        KeyLimit::pack_terms(self.expires, &self.limits, packer);
    }

    /// Whether other jobs are hardly given the same, as they have an id, or one by which they deduplicate.
    pub fn are_of_one_job(&self) -> bool {
        self.job_id.is_some() || self.deduplication.is_some()
    }

    /// True for a job that goes to the end of the waiting list at once, without a priority, and yields to no other.
    pub(crate) fn just_waits(&self) -> bool {
        self.delay_ms == 0
            && !self.lifo
            && self.priority == 0
            && self.group.is_none()
            && self.deduplication.is_none()
            && !self.has_terms()
    }
}

/// A JSON text in which surrogates that are escaped, as `JSON.stringify` escapes those without their other half, are replaced as in UTF-8;
/// `None` when there are none.
fn without_half_pairs(text: &str) -> Option<String> {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let is_half = |escape: &[u8]| {
            matches!(escape, [b'\\', b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', low @ ..]
                if low.iter().all(u8::is_ascii_hexdigit))
        };
        let escape = rest.as_bytes().get(at..at + 6).filter(|escape| is_half(escape));
        // an escape that is none of these keeps what it escapes, which may be a backslash
        let end = at + if escape.is_some() { 6 } else { 2 };
        replaced.push_str(&rest[..at]);
        match escape {
            Some(_) => replaced.push('\u{fffd}'),
            None => replaced.push_str(rest.get(at..end)?),
        }
        rest = &rest[end..];
    }
    replaced.push_str(rest);
    (replaced != text).then_some(replaced)
}

/// The delay of options that say nothing else; it is often different for each job of a batch.
fn delay_alone(text: &str) -> Option<u64> {
    let digits = text.strip_prefix(r#"{"delay":"#)?.strip_suffix('}')?;
    let is_number = digits.len() < 16 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// Pause between two tries. Source: BullMQ `BackoffOptions`.
#[derive(Debug, Clone, PartialEq)]
pub struct Backoff {
    /// `fixed`, `exponential`, or the name of a strategy of the user's.
    pub kind: String,
    /// Base, ms.
    pub delay_ms: f64,
    /// 0 to 1: the part of a pause that is random.
    pub jitter: f64,
}

impl Backoff {
    /// The same pause before every try.
    pub fn fixed(pause: Duration) -> Self {
        Self {
            kind: "fixed".into(),
            delay_ms: pause.as_millis() as f64,
            jitter: 0.0,
        }
    }

    /// This pause before the second try, doubled for each one after.
    pub fn exponential(pause: Duration) -> Self {
        Self {
            kind: "exponential".into(),
            ..Self::fixed(pause)
        }
    }

    /// Makes a part of each pause random, 0 to 1.
    pub fn with_jitter(self, jitter: f64) -> Self {
        Self { jitter, ..self }
    }

    fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(Self {
                kind: "fixed".into(),
                delay_ms: number.as_f64().unwrap_or(0.0),
                jitter: 0.0,
            }),
            Value::Object(map) => Some(Self {
                kind: map.get("type").and_then(Value::as_str).unwrap_or("").to_owned(),
                delay_ms: map.get("delay").and_then(number).unwrap_or(0.0),
                jitter: map.get("jitter").and_then(number).unwrap_or(0.0),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{due_ms, LONGEST_MS};

    #[test]
    fn times_and_delays_have_an_end() {
        let delay = |text: &str| {
            JobOptions::parse(&format!(r#"{{"delay":{text}}}"#))
                .expect("options")
                .delay_ms
        };
        assert_eq!([delay("1e19"), delay("1e300"), delay(r#""1e19""#)], [LONGEST_MS; 3]);
        assert_eq!(
            [delay("-1e300"), delay("0.5"), delay("9007199254740991")],
            [0, 0, LONGEST_MS]
        );
        let late = JobOptions::parse(r#"{"timestamp":1e300,"delay":1e300}"#).expect("options");
        assert_eq!(late.timestamp, Some(LONGEST_MS));
        assert_eq!(due_ms(u64::MAX, u64::MAX), 2 * LONGEST_MS);
    }

    #[test]
    fn half_a_try_is_one() {
        let attempts = |text: &str| {
            JobOptions::parse(&format!(r#"{{"attempts":{text}}}"#))
                .expect("options")
                .attempts
        };
        assert_eq!(
            [attempts("2.5"), attempts(r#""2.5""#), attempts("0.1"), attempts("-3")],
            [3, 3, 1, 0]
        );
        assert_eq!(attempts("1e300"), u32::MAX);
    }

    #[test]
    fn a_delay_alone_is_read_as_any_options_are() {
        for text in [r#"{"delay":0}"#, r#"{"delay":5}"#, r#"{"delay":999999999999999}"#] {
            let padded = text.replace(':', ": ");
            let [short, long] = [text, &padded].map(|text| JobOptions::parse(text).expect("options").delay_ms);
            assert_eq!(short, long, "{text}");
        }
        for text in [r#"{"delay":}"#, r#"{"delay":1x}"#, r#"{"delay":1"#] {
            assert!(JobOptions::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_id_or_a_delay_keeps_a_job_out_of_frames() {
        let plain = |text: &str| JobOptions::parse(text).expect("options").is_plain();
        assert!(plain("{}"));
        assert!(plain(
            r#"{"attempts":3,"jobId":"","backoff":{"type":"fixed","delay":5}}"#
        ));
        assert!(!plain(r#"{"jobId":"a"}"#));
        assert!(!plain(r#"{"delay":5}"#));
        assert!(!plain(r#"{"deduplication":{"id":"a"}}"#));
        assert!(!plain(r#"{"priority":1}"#));
        assert!(!plain(r#"{"lifo":true}"#));
        assert!(!plain(r#"{"expireAfter":5}"#));
        assert!(!plain(r#"{"limits":[{"key":"a","max":1,"duration":5}]}"#));
    }

    #[test]
    fn half_a_pair_of_surrogates_is_replaced_as_in_utf8() {
        let parse = |text: &str| JobOptions::parse(text).expect("options");
        let options = parse(r#"{"jobId":"a\ud800","x\udfff":"\\ud800\"","attempts":2}"#);
        assert_eq!((options.job_id.as_deref(), options.attempts), (Some("a\u{fffd}"), 2));
        assert!(options.text.contains(r"a\ud800"));
        assert_eq!(parse(r#"{"jobId":"\\\\ud800"}"#).job_id.as_deref(), Some("\\\\ud800"));
        for broken in [r#"{"jobId":"\ud800"#, r#"{"a":"\"#, r#"{"a":"\u"#, "{\"a\":\"\\é"] {
            assert!(JobOptions::parse(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn options_that_are_not_an_object_are_refused() {
        assert!(JobOptions::parse("[]").is_err() || JobOptions::parse("3").is_err());
        assert!(JobOptions::parse(r#"{"jobId":7}"#).is_err());
    }
}
