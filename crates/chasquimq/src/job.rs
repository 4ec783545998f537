//! A job as it is stored, and what is known of it.

use crate::{
    error::{Error, Result},
    pack::{Item, Reader},
};

/// What changed about a job since it was added. Absent = never happened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vitals {
    /// Tries that ended, `am`.
    pub attempts_made: u32,
    /// Times it became active, `as`.
    pub attempts_started: u32,
    /// Times it was brought back from a worker that was gone, `st`.
    pub stalled_counter: u32,
    /// Progress, JSON text, `p`.
    pub progress: Option<String>,
    /// Return value, JSON text, `rv`.
    pub returnvalue: Option<String>,
    /// Message of the last error, `fr`.
    pub failed_reason: Option<String>,
    /// Stack traces, JSON array of texts, `tr`.
    pub stacktrace: Option<String>,
    /// Last activation, epoch ms, `po`.
    pub processed_on: Option<u64>,
    /// Last finish, epoch ms, `fo`.
    pub finished_on: Option<u64>,
    /// Name of the worker, `pb`.
    pub processed_by: Option<String>,
    /// Pause before the next try or start, ms, `d`.
    pub delay_ms: Option<u64>,
    /// Reason to fail the job as soon as a worker has it, `df`.
    pub deferred_failure: Option<String>,
}

impl Vitals {
    /// Reads the map that the scripts write. Keys of a newer version are passed over.
    /// # Errors
    /// [`Error::Malformed`] when it is no map.
    pub fn parse(blob: &[u8]) -> Result<Self> {
        let mut vitals = Vitals::default();
        if blob.is_empty() {
            return Ok(vitals);
        }
        let mut reader = Reader::new(blob);
        let pairs = match reader.item()? {
            Item::Map(pairs) => pairs,
            Item::Array(0) => 0,
            other => return Err(Error::malformed("a job's vitals", format_args!("{other:?}"))),
        };
        for _ in 0..pairs {
            match reader.str()? {
                "am" => vitals.attempts_made = reader.int()? as u32,
                "as" => vitals.attempts_started = reader.int()? as u32,
                "st" => vitals.stalled_counter = reader.int()? as u32,
                "p" => vitals.progress = Some(reader.str()?.to_owned()),
                "rv" => vitals.returnvalue = Some(reader.str()?.to_owned()),
                "fr" => vitals.failed_reason = Some(reader.str()?.to_owned()),
                "tr" => vitals.stacktrace = Some(reader.str()?.to_owned()),
                "po" => vitals.processed_on = Some(reader.int()? as u64),
                "fo" => vitals.finished_on = Some(reader.int()? as u64),
                "pb" => vitals.processed_by = Some(reader.str()?.to_owned()),
                "d" => vitals.delay_ms = Some(reader.int()?.max(0) as u64),
                "df" => vitals.deferred_failure = Some(reader.str()?.to_owned()),
                _ => reader.skip()?,
            }
        }
        Ok(vitals)
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
            options: reader.str()?.to_owned(),
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
    /// Milliseconds of delay, while it is delayed; else 0.
    pub delay_ms: u64,
}
