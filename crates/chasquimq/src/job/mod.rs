//! A job as it is stored, and what is known of it.

pub mod frame;
pub(crate) mod large;
pub mod msgpack;
pub mod options;

use serde::Deserialize;

use crate::{
    error::{Error, Result},
    job::{frame::body_options, msgpack::Reader},
    keys::qualified_name,
};

/// What changed about a job since it was added. Absent = never happened.
///
/// Stored as a MessagePack map with short keys, which the scripts write too.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Vitals {
    /// Tries that ended.
    #[serde(rename = "am")]
    pub attempts_made: u32,
    /// Times it became active.
    #[serde(rename = "as")]
    pub attempts_started: u32,
    /// Times it was brought back from a worker that was gone.
    #[serde(rename = "st")]
    pub stalled_counter: u32,
    /// Progress, JSON text.
    #[serde(rename = "p")]
    pub progress: Option<String>,
    /// Return value, JSON text.
    #[serde(rename = "rv")]
    pub returnvalue: Option<String>,
    /// Message of the last error.
    #[serde(rename = "fr")]
    pub failed_reason: Option<String>,
    /// Stack traces, JSON array of texts. Stored apart; here it is empty where there are some, and no reason says so.
    #[serde(rename = "tr")]
    pub stacktrace: Option<String>,
    /// Last activation, epoch ms.
    #[serde(rename = "po")]
    pub processed_on: Option<u64>,
    /// Last finish, epoch ms.
    #[serde(rename = "fo")]
    pub finished_on: Option<u64>,
    /// Name of the worker.
    #[serde(rename = "pb")]
    pub processed_by: Option<String>,
    /// Pause before the next try or start, ms.
    #[serde(rename = "d")]
    pub delay_ms: Option<u64>,
    /// Priority, since it was changed.
    #[serde(rename = "pr")]
    pub priority: Option<i64>,
    /// Reason to fail the job as soon as a worker has it.
    #[serde(rename = "df")]
    pub deferred_failure: Option<String>,
    /// Deduplication id.
    #[serde(rename = "di")]
    pub deduplication_id: Option<String>,
    /// What waits for it.
    #[serde(rename = "pa")]
    pub parent: Option<Parent>,
    /// It has, or had, children.
    #[serde(rename = "ch")]
    pub children: Option<serde::de::IgnoredAny>,
    /// Bytes of its data, when they lie apart (`lua/lib/large.lua`).
    #[serde(rename = "ld")]
    pub large_data: Option<u64>,
    /// The same of its return value.
    #[serde(rename = "lr")]
    pub large_result: Option<u64>,
}

/// Reference of a child to its parent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Parent {
    /// What the keys of the parent's queue start with.
    pub base: String,
    /// Its id.
    pub id: String,
    /// What becomes of it when the child fails.
    pub policy: Policy,
    /// Of a child that is or was in a frame: number of the first of its span, and how many these are (`lua/lib/spans.lua`).
    #[serde(default)]
    pub span: Option<u64>,
    /// See `span`.
    #[serde(default)]
    pub span_len: Option<u64>,
}

impl Parent {
    /// `<prefix>:<queue>` of its queue, as in BullMQ.
    pub fn qualified_name(&self) -> &str {
        qualified_name(&self.base)
    }

    /// Its key as users see it.
    pub fn key(&self) -> String {
        format!("{}:{}", self.qualified_name(), self.id)
    }

    /// The reference as BullMQ stores it, JSON text.
    pub fn to_json(&self) -> String {
        let mut reference = serde_json::json!({ "id": self.id, "queueKey": self.qualified_name() });
        if let Some(mark) = self.policy.mark() {
            reference[mark] = true.into();
        }
        reference.to_string()
    }
}

/// What a child's failure does to its parent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Policy {
    /// Nothing: it goes on waiting.
    #[default]
    #[serde(rename = "")]
    Wait,
    /// It fails too.
    #[serde(rename = "f")]
    Fail,
    /// It starts at once.
    #[serde(rename = "c")]
    Continue,
    /// It counts the child as done.
    #[serde(rename = "i")]
    Ignore,
    /// It forgets the child.
    #[serde(rename = "r")]
    Remove,
}

impl Policy {
    /// As the scripts know it.
    pub fn letter(self) -> &'static str {
        match self {
            Policy::Wait => "",
            Policy::Fail => "f",
            Policy::Continue => "c",
            Policy::Ignore => "i",
            Policy::Remove => "r",
        }
    }

    /// That of a letter; what a newer version may write does nothing.
    pub fn of(letter: &str) -> Self {
        match letter {
            "f" => Policy::Fail,
            "c" => Policy::Continue,
            "i" => Policy::Ignore,
            "r" => Policy::Remove,
            _ => Policy::Wait,
        }
    }

    /// The mark of a child's `parent` in BullMQ.
    pub fn mark(self) -> Option<&'static str> {
        match self {
            Policy::Wait => None,
            Policy::Fail => Some("fpof"),
            Policy::Continue => Some("cpof"),
            Policy::Ignore => Some("idof"),
            Policy::Remove => Some("rdof"),
        }
    }
}

impl Vitals {
    /// Those of a job that starts for the first time.
    pub fn first_start() -> Self {
        Self {
            attempts_started: 1,
            ..Self::default()
        }
    }

    /// Whether something of the job lies apart.
    pub(crate) fn has_large(&self) -> bool {
        self.large_data.is_some() || self.large_result.is_some()
    }

    /// Those of a job that cannot be read: it is to fail.
    pub fn of_unreadable(error: &Error) -> Self {
        Self {
            deferred_failure: Some(error.reason_to_fail()),
            ..Self::default()
        }
    }

    /// Reads the map that the scripts write. Keys of a newer version are passed over.
    /// # Errors
    /// [`Error::Malformed`] when it is no map.
    pub fn parse(blob: &[u8]) -> Result<Self> {
        if blob.is_empty() {
            return Ok(Self::default());
        }
        // Lua writes an empty map as an empty array, which is a struct without its fields
        rmp_serde::from_slice(blob).map_err(|error| Error::malformed("a job's vitals", error))
    }
}

/// Body of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// Creation time, epoch ms.
    pub timestamp: u64,
    /// Options, JSON text.
    pub options: String,
    /// Name.
    pub name: String,
    /// Data, JSON text.
    pub data: String,
}

impl Body {
    /// What stands for a body that cannot be read.
    pub fn unreadable() -> Self {
        Self {
            timestamp: 0,
            options: "{}".into(),
            name: String::new(),
            data: "{}".into(),
        }
    }

    /// Reads a record's body.
    /// # Errors
    /// [`Error::Malformed`] when it is none.
    pub fn parse(blob: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(blob);
        if reader.array()? < 4 {
            return Err(Error::malformed("a job's record", "too few values"));
        }
        Ok(Self {
            timestamp: reader.int()? as u64,
            options: body_options(&mut reader)?.into_owned(),
            name: reader.str()?.to_owned(),
            data: reader.str()?.to_owned(),
        })
    }
}

/// A job, whole, as a look-up gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Id.
    pub id: String,
    /// State, in BullMQ's words.
    pub state: String,
    /// What was known when it was added.
    pub body: Body,
    /// What happened since.
    pub vitals: Vitals,
    /// Milliseconds of delay, while it is delayed, or is a parent that will be; else 0.
    pub delay_ms: u64,
    /// Its priority; 0 = none.
    pub priority: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::msgpack::Packer;

    #[test]
    fn vitals_are_read_from_the_map_of_the_scripts() {
        let mut map = Packer(vec![0x84]);
        map.str("am")
            .int(2)
            .str("fr")
            .str("no")
            .str("po")
            .int(1_700_000_000_000);
        map.str("from a newer version").array(1).str("x");
        let expected = Vitals {
            attempts_made: 2,
            failed_reason: Some("no".into()),
            processed_on: Some(1_700_000_000_000),
            ..Vitals::default()
        };
        assert_eq!(Vitals::parse(&map.0).expect("vitals"), expected);
    }

    #[test]
    fn a_job_nothing_happened_to_has_default_vitals() {
        let lua_empty_table = [0x90];
        for blob in [&[][..], &lua_empty_table] {
            assert_eq!(Vitals::parse(blob).expect("vitals"), Vitals::default());
        }
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for blob in [
            &[0xa1, b'x'][..],
            &[0x81, 0xa2, b'a'],
            &[0x81, 0xa2, b'a', b'm', 0xa1, b'x'],
        ] {
            assert!(matches!(Vitals::parse(blob), Err(Error::Malformed { .. })), "{blob:?}");
        }
    }

    #[test]
    fn a_body_may_have_more_values_than_are_known() {
        let mut array = Packer::default();
        array.array(5).int(7).str("{}").str("mail").str("1").nil();
        let body = Body::parse(&array.0).expect("body");
        assert_eq!(
            (body.timestamp, body.name.as_str(), body.data.as_str()),
            (7, "mail", "1")
        );
        let mut short = Packer::default();
        short.array(3).int(7).str("{}").str("mail");
        assert!(Body::parse(&short.0).is_err());
    }
}
