//! Jobs as BullMQ stores them, to be compared with what they become.

use chasquimq::{redis::call::reply::Reply, Result};
use redis::{cmd, pipe, Value};

use super::{Migration, MOST_A_STEP};

/// A job of BullMQ's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceJob {
    /// Its id.
    pub id: String,
    /// Its fields and their values in turn.
    pub fields: Vec<String>,
    /// The rows of its log.
    pub logs: Vec<String>,
    /// It is in the list or set that was asked for, not far from the end that is entered.
    pub is_in_place: bool,
}

/// How far into a list a job is looked for.
const LIST_DEPTH: u64 = 4 * MOST_A_STEP;

impl Migration<'_> {
    /// The next ids of one of BullMQ's lists or sets: those that a step looks at that passes over so many.
    pub async fn source_ids(&self, place: &str, skip: u64) -> Result<Vec<String>> {
        let (key, skip, most) = (self.key_of(place), skip as i64, MOST_A_STEP as i64);
        let mut range = cmd(if is_list(place) { "LRANGE" } else { "ZRANGE" });
        range.arg(key);
        if is_list(place) {
            range.arg(-(skip + most)).arg(-(skip + 1));
        } else {
            range.arg(skip).arg(skip + most - 1);
        }
        Reply::new("the answer to a range", self.queue.connection().send(&range).await?)?.texts()
    }

    /// Jobs of BullMQ's by their ids, without those that are not there. `place`: where they may be; empty where nobody asks.
    pub async fn source_jobs(&self, ids: &[String], place: &str) -> Result<Vec<SourceJob>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (source, place_key) = (self.source(), self.key_of(place));
        let mut pipeline = pipe();
        for id in ids {
            pipeline.cmd("HGETALL").arg(format!("{source}{id}"));
            pipeline.cmd("LRANGE").arg(format!("{source}{id}:logs")).arg(0).arg(-1);
            if is_list(place) {
                let found = pipeline.cmd("LPOS").arg(&place_key).arg(id);
                found.arg("MAXLEN").arg(LIST_DEPTH);
            } else {
                pipeline.cmd("ZSCORE").arg(&place_key).arg(id);
            }
        }
        let replies = self
            .queue
            .connection()
            .send_pipeline_once(&pipeline, 3 * ids.len())
            .await?;
        let mut replies = replies.into_iter();
        let mut jobs = Vec::new();
        for id in ids {
            let (fields, logs, found) = (replies.next(), replies.next(), replies.next());
            let fields = texts(fields)?;
            if !fields.is_empty() {
                jobs.push(SourceJob {
                    id: id.clone(),
                    fields,
                    logs: texts(logs)?,
                    is_in_place: matches!(found, Some(Value::Int(_) | Value::BulkString(_) | Value::Double(_))),
                });
            }
        }
        Ok(jobs)
    }

    fn key_of(&self, place: &str) -> String {
        format!("{}{place}", self.source())
    }
}

fn is_list(place: &str) -> bool {
    matches!(place, "wait" | "paused")
}

/// The texts of an array; none of what is none, such as the refusal of a key that holds something else.
fn texts(reply: Option<Value>) -> Result<Vec<String>> {
    match reply {
        Some(Value::Array(values)) => Reply::new("a job of BullMQ's", Value::Array(values))?.texts(),
        _ => Ok(Vec::new()),
    }
}
