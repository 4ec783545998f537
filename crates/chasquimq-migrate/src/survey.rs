//! What BullMQ has of a queue.

use chasquimq::{redis::call::reply::int, Error, Result};
use redis::{cmd, Cmd, Value};

use super::Migration;

/// Numbers of jobs by place, and what else BullMQ has of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// There is such a queue.
    pub exists: bool,
    /// What wrote its settings, such as `bullmq:6.7.0`; empty for one that was written by nobody who says so.
    pub version: String,
    /// Each of BullMQ's lists and sets, and how many jobs are there.
    pub places: Vec<(String, u64)>,
    /// Job schedulers.
    pub schedulers: u64,
}

/// BullMQ's lists and sets of jobs.
const PLACES: [(&str, &str); 8] = [
    ("wait", "LLEN"),
    ("paused", "LLEN"),
    ("active", "LLEN"),
    ("prioritized", "ZCARD"),
    ("delayed", "ZCARD"),
    ("waiting-children", "ZCARD"),
    ("completed", "ZCARD"),
    ("failed", "ZCARD"),
];

impl Migration<'_> {
    /// Looks at what BullMQ has of the queue of this name.
    /// # Errors
    /// [`Error::Invalid`] when another program's keys have these names.
    pub async fn survey_source(&self) -> Result<Survey> {
        self.require_one_slot()?;
        let source = self.source();
        let key = |suffix: &str| format!("{source}{suffix}");
        let mut survey = Survey::default();
        for (place, count) in PLACES {
            survey
                .places
                .push((place.to_owned(), self.count_at(count, &key(place)).await?));
        }
        survey.schedulers = self.count_at("ZCARD", &key("repeat")).await?;
        // what is no set would end a step of the move
        self.count_at("SCARD", &key("moved-parents")).await?;
        let mut version = cmd("HGET");
        version.arg(key("meta")).arg("version");
        if let Value::BulkString(bytes) = self.ask_source(&version, &key("meta")).await? {
            survey.version = String::from_utf8_lossy(&bytes).into_owned();
        }
        let mut exists = cmd("EXISTS");
        exists.arg(key("meta")).arg(key("id"));
        let known = int("the answer to EXISTS", &self.ask_source(&exists, &key("meta")).await?)?;
        survey.exists = known > 0 || survey.places.iter().any(|(_, jobs)| *jobs > 0);
        Ok(survey)
    }

    async fn count_at(&self, command: &'static str, key: &str) -> Result<u64> {
        let mut count = cmd(command);
        count.arg(key);
        Ok(int(command, &self.ask_source(&count, key).await?)? as u64)
    }

    async fn ask_source(&self, command: &Cmd, key: &str) -> Result<Value> {
        match self.queue.connection().send(command).await {
            Err(Error::Refused(message)) if message.code() == "WRONGTYPE" => Err(Error::Invalid(format!(
                "the key {key} holds what BullMQ does not write there"
            ))),
            answered => answered,
        }
    }
}
