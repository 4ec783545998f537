//! Options of a job, as a struct; stored as the JSON object that BullMQ users write.

use std::time::Duration;

use chasquimq::{Backoff, Deduplication, Error, Group, JobOptions, Keep, KeyLimit, Result};
use serde::{ser::SerializeMap, Serialize, Serializer};

use crate::turns::{as_group, as_limits, check_group, check_limits, PRIORITY_LIMIT};

/// How long a job may wait for its start; more is a time since 1970 to the engine.
const LONGEST: Duration = Duration::from_secs(100_000_000);
const SHORTEST: Duration = Duration::from_millis(1);

/// Options of a job to be added. The default says nothing: one try, run at once, at the end of the waiting list, kept for ever.
///
/// ```
/// use chasquimq_typed::{AddOptions, Backoff, Keep};
/// use std::time::Duration;
///
/// let options = AddOptions {
///     attempts: 5,
///     backoff: Some(Backoff::exponential(Duration::from_secs(1))),
///     remove_on_complete: Some(Keep::newest(1000)),
///     ..AddOptions::default()
/// };
/// ```
/// Source: BullMQ 6.7 `JobsOptions`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddOptions {
    /// An id of the caller's. A second job with the id of one that exists is not added. It may not look like a number, which
    /// other ids are, nor contain `:`, except twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Time from `timestamp` until the job may start; whole milliseconds.
    #[serde(skip_serializing_if = "Duration::is_zero", serialize_with = "as_ms")]
    pub delay: Duration,
    /// Number of tries in all; 0 is 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// Pause before the next try; none by default.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_backoff")]
    pub backoff: Option<Backoff>,
    /// Starts when no job without a priority waits; 1 comes first, [`PRIORITY_LIMIT`] last. 0 is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: u32,
    /// Put the job at the head of the waiting list: last in, first out. Says nothing with a priority.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lifo: bool,
    /// Starts in a turn of this group. Goes with neither `priority` nor `lifo`: a group has a priority of its own for it. Not in BullMQ.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_group")]
    pub group: Option<Group>,
    /// Up to 8 keys that each start of the job uses: it waits, `delayed`, until all of them have room. Not in BullMQ.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_limits")]
    pub limits: Vec<KeyLimit>,
    /// Retention once completed; the worker's by default.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_keep")]
    pub remove_on_complete: Option<Keep>,
    /// Retention once failed for good; the worker's by default.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_keep")]
    pub remove_on_fail: Option<Keep>,
    /// Yields to a job that exists.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_deduplication")]
    pub deduplication: Option<Deduplication>,
    /// The job fails for good unless it has started so long after it was added, at most 10^11 ms; whole milliseconds, and 0 is never.
    #[serde(skip_serializing_if = "Duration::is_zero", serialize_with = "as_ms")]
    pub expire_after: Duration,
    /// How long a try may take, at most 10^11 ms; whole milliseconds, and 0 is no limit. Then the handler is told, and the try fails. Not in BullMQ.
    #[serde(skip_serializing_if = "Duration::is_zero", serialize_with = "as_ms")]
    pub timeout: Duration,
    /// The job fails for good when a try takes longer, whatever tries are left.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub timeout_is_final: bool,
    /// Creation time, epoch ms; now by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<u64>,
    /// Stack traces kept of a job that fails again and again, the newest; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_trace_limit: Option<u32>,
}

impl AddOptions {
    /// The engine's form.
    /// # Errors
    /// [`Error::Invalid`], in BullMQ's words, for an id, a deduplication id, a priority or a jitter that BullMQ refuses; and for an `expire_after` or
    /// a `timeout` that is longer, or shorter than a millisecond, a deduplication that ends at the start and keeps what comes later, a group or limits that no job can keep, or a group beside `priority` or
    /// `lifo`.
    pub fn to_job_options(&self) -> Result<JobOptions> {
        if let Some(id) = &self.job_id {
            check_id(id)?;
        }
        if self
            .deduplication
            .as_ref()
            .is_some_and(|deduplication| deduplication.id.is_empty())
        {
            return Err(Error::Invalid("Deduplication id must be provided".into()));
        }
        if let Some(backoff) = &self.backoff {
            if !(0.0..=1.0).contains(&backoff.jitter) {
                return Err(Error::Invalid("Jitter should be between 0 and 1".into()));
            }
        }
        if self.priority > PRIORITY_LIMIT {
            return Err(Error::Invalid(format!(
                "Priority should be between 0 and {PRIORITY_LIMIT}"
            )));
        }
        check_time(self.expire_after, "expire_after")?;
        check_time(self.timeout, "timeout")?;
        if let Some(group) = &self.group {
            check_group(group, self.priority > 0 || self.lifo)?;
        }
        check_limits(&self.limits)?;
        let contradicts = |dedup: &Deduplication| dedup.until_started && dedup.keep_last_if_active;
        if self.deduplication.as_ref().is_some_and(contradicts) {
            return Err(Error::Invalid(
                "until_started and keep_last_if_active cannot be used together".into(),
            ));
        }
        let text = serde_json::to_string(self).map_err(|error| Error::Invalid(format!("job options: {error}")))?;
        JobOptions::parse(&text)
    }
}

fn check_time(time: Duration, name: &str) -> Result<()> {
    if time.is_zero() || (SHORTEST..=LONGEST).contains(&time) {
        return Ok(());
    }
    Err(Error::Invalid(format!("{name} must be from 1 to 10^11 ms")))
}

/// Ids that look like counted ones, or like keys, are refused.
fn check_id(id: &str) -> Result<()> {
    if id.parse::<i64>().is_ok_and(|number| number.to_string() == id) {
        return Err(Error::Invalid("Custom Id cannot be integers".into()));
    }
    if id.contains(':') && id.split(':').count() != 3 {
        return Err(Error::Invalid("Custom Id cannot contain :".into()));
    }
    Ok(())
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn as_ms<S: Serializer>(time: &Duration, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_u64(time.as_millis() as u64)
}

fn as_backoff<S: Serializer>(backoff: &Option<Backoff>, to: S) -> std::result::Result<S::Ok, S::Error> {
    let Some(backoff) = backoff else {
        return to.serialize_none();
    };
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("type", &backoff.kind)?;
    map.serialize_entry("delay", &Number(backoff.delay_ms))?;
    if backoff.jitter > 0.0 {
        map.serialize_entry("jitter", &backoff.jitter)?;
    }
    map.end()
}

fn as_deduplication<S: Serializer>(dedup: &Option<Deduplication>, to: S) -> std::result::Result<S::Ok, S::Error> {
    let Some(dedup) = dedup else {
        return to.serialize_none();
    };
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("id", &dedup.id)?;
    if dedup.ttl_ms > 0 {
        map.serialize_entry("ttl", &dedup.ttl_ms)?;
    }
    let flags = [
        ("extend", dedup.extend),
        ("replace", dedup.replace),
        ("reschedule", dedup.reschedule),
        ("keepLastIfActive", dedup.keep_last_if_active),
    ];
    if dedup.until_started {
        map.serialize_entry("until", "started")?;
    }
    for (name, _) in flags.iter().filter(|(_, set)| *set) {
        map.serialize_entry(name, &true)?;
    }
    map.end()
}

fn as_keep<S: Serializer>(keep: &Option<Keep>, to: S) -> std::result::Result<S::Ok, S::Error> {
    let keep = match keep {
        None => return to.serialize_none(),
        Some(keep) if *keep == Keep::ALL => return to.serialize_bool(false),
        Some(keep) if *keep == Keep::NONE => return to.serialize_bool(true),
        Some(keep) => keep,
    };
    let mut map = to.serialize_map(None)?;
    if keep.count >= 0 {
        map.serialize_entry("count", &keep.count)?;
    }
    if keep.age >= 0.0 {
        map.serialize_entry("age", &Number(keep.age))?;
    }
    if keep.limit != Keep::ALL.limit {
        map.serialize_entry("limit", &keep.limit)?;
    }
    map.end()
}

/// A number that is written without a fraction when it has none, as JavaScript does.
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 && self.0.abs() < 9e15 {
            to.serialize_i64(self.0 as i64)
        } else {
            to.serialize_f64(self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_say_nothing_are_an_empty_object() {
        let options = AddOptions::default().to_job_options().expect("options");
        assert_eq!(options, JobOptions::none("{}"));
    }

    #[test]
    fn options_are_written_with_the_names_of_bullmq_and_read_back() {
        let options = AddOptions {
            job_id: Some("a".into()),
            delay: Duration::from_millis(1500),
            attempts: 3,
            backoff: Some(Backoff::exponential(Duration::from_secs(1)).with_jitter(0.5)),
            priority: 7,
            lifo: true,
            group: None,
            limits: Vec::new(),
            remove_on_complete: Some(Keep::newest(10)),
            remove_on_fail: Some(Keep::younger_than(Duration::from_secs(60))),
            deduplication: Some(Deduplication {
                ttl_ms: 9,
                extend: true,
                until_started: true,
                ..Deduplication::of("d")
            }),
            expire_after: Duration::from_secs(2),
            timeout: Duration::from_millis(20),
            timeout_is_final: true,
            timestamp: Some(7),
            stack_trace_limit: Some(2),
        };
        let parsed = options.to_job_options().expect("options");
        let text = concat!(
            r#"{"jobId":"a","delay":1500,"attempts":3,"backoff":{"type":"exponential","delay":1000,"jitter":0.5},"#,
            r#""priority":7,"lifo":true,"removeOnComplete":{"count":10},"removeOnFail":{"age":60},"deduplication":{"id":"d","ttl":9,"until":"started","extend":true},"expireAfter":2000,"timeout":20,"timeoutIsFinal":true,"timestamp":7,"stackTraceLimit":2}"#,
        );
        assert_eq!((parsed.text.as_str(), parsed.priority), (text, 7));
        assert_eq!(parsed.backoff, options.backoff);
        assert_eq!(parsed.remove_on_complete, options.remove_on_complete);
        assert_eq!(parsed.remove_on_fail, options.remove_on_fail);
        assert_eq!(parsed.deduplication, options.deduplication);
    }

    #[test]
    fn keeping_all_or_nothing_is_a_truth_value() {
        let text = |keep| {
            let options = AddOptions {
                remove_on_complete: Some(keep),
                ..AddOptions::default()
            };
            options.to_job_options().expect("options").text
        };
        assert_eq!(text(Keep::ALL), r#"{"removeOnComplete":false}"#);
        assert_eq!(text(Keep::NONE), r#"{"removeOnComplete":true}"#);
    }

    #[test]
    fn ids_that_bullmq_refuses_are_refused() {
        let with_id = |id: &str| AddOptions {
            job_id: Some(id.into()),
            ..AddOptions::default()
        };
        for id in ["7", "0", "-3", "a:b"] {
            assert!(with_id(id).to_job_options().is_err(), "{id}");
        }
        for id in ["a", "007", "7a", "a:b:c"] {
            assert!(with_id(id).to_job_options().is_ok(), "{id}");
        }
    }

    #[test]
    fn a_deduplication_without_an_id_is_refused() {
        let options = AddOptions {
            deduplication: Some(Deduplication::of("")),
            ..AddOptions::default()
        };
        assert!(options.to_job_options().is_err());
    }

    #[test]
    fn a_time_that_is_none_is_refused() {
        for time in [Duration::from_micros(5), Duration::MAX] {
            let expiring = AddOptions {
                expire_after: time,
                ..AddOptions::default()
            };
            let limited = AddOptions {
                timeout: time,
                ..AddOptions::default()
            };
            assert!(expiring.to_job_options().is_err() && limited.to_job_options().is_err());
        }
    }

    #[test]
    fn a_priority_out_of_range_is_refused() {
        let with_priority = |priority| AddOptions {
            priority,
            ..AddOptions::default()
        };
        assert!(with_priority(PRIORITY_LIMIT).to_job_options().is_ok());
        assert!(with_priority(PRIORITY_LIMIT + 1).to_job_options().is_err());
    }

    #[test]
    fn a_jitter_out_of_range_is_refused() {
        let options = AddOptions {
            backoff: Some(Backoff::fixed(Duration::ZERO).with_jitter(1.5)),
            ..AddOptions::default()
        };
        assert!(options.to_job_options().is_err());
    }
}
