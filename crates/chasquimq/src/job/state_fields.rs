//! What happened to a job since it was added.

use serde::Deserialize;

use super::parent::Parent;
use crate::error::{Error, Result};

/// What changed about a job since it was added. Absent = never happened.
///
/// Stored as a MessagePack map with short keys, which the scripts write too, in the hash `vitals`, as the first release called them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StateFields {
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
    /// From when on it could be tried again, epoch ms, where that is measured.
    #[serde(rename = "ws")]
    pub waits_since: Option<u64>,
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
    /// Bytes of its data, when they lie apart (`lua/jobs/large.lua`).
    #[serde(rename = "ld")]
    pub large_data: Option<u64>,
    /// The same of its return value.
    #[serde(rename = "lr")]
    pub large_result: Option<u64>,
}

impl StateFields {
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
        rmp_serde::from_slice(blob).map_err(|error| Error::malformed("a job's state fields", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::msgpack::Packer;

    #[test]
    fn fields_are_read_from_the_map_of_the_scripts() {
        let mut map = Packer(vec![0x84]);
        map.str("am")
            .int(2)
            .str("fr")
            .str("no")
            .str("po")
            .int(1_700_000_000_000);
        map.str("from a newer version").array(1).str("x");
        let expected = StateFields {
            attempts_made: 2,
            failed_reason: Some("no".into()),
            processed_on: Some(1_700_000_000_000),
            ..StateFields::default()
        };
        assert_eq!(StateFields::parse(&map.0).expect("state fields"), expected);
    }

    #[test]
    fn a_job_nothing_happened_to_has_default_fields() {
        let lua_empty_table = [0x90];
        for blob in [&[][..], &lua_empty_table] {
            assert_eq!(StateFields::parse(blob).expect("state fields"), StateFields::default());
        }
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for blob in [
            &[0xa1, b'x'][..],
            &[0x81, 0xa2, b'a'],
            &[0x81, 0xa2, b'a', b'm', 0xa1, b'x'],
        ] {
            assert!(
                matches!(StateFields::parse(blob), Err(Error::Malformed { .. })),
                "{blob:?}"
            );
        }
    }
}
