//! A queue's settings and limits.

use redis::Value;

use super::Queue;
use crate::{
    error::{Error, Result},
    redis::call::{
        library::{args, Arg, CONFIGURE, LIMIT_LEFT, PAUSE, SET_LIMIT},
        reply::{shape, Reply},
    },
};

impl Queue {
    /// Sets or clears the flag that stops every worker's fetching.
    pub async fn pause(&self, now_ms: u64, paused: bool) -> Result<()> {
        self.run_once(&PAUSE, now_ms, &args![paused]).await.map(drop)
    }

    /// Sets how many jobs may be active at once, over all workers; `None` = any number. Numbers are texts, kept as they are. Answers how
    /// many settings came or went.
    pub async fn limit_concurrency(&self, jobs: Option<&str>) -> Result<u64> {
        self.set_limit("concurrency", jobs, "").await
    }

    /// Sets how many jobs may start in a window of `duration_ms`, over all workers; `None` = any number. Otherwise as
    /// [`Queue::limit_concurrency`].
    pub async fn limit_rate(&self, rate: Option<(&str, &str)>) -> Result<u64> {
        let (max, duration_ms) = rate.unzip();
        self.set_limit("rate", max, duration_ms.unwrap_or("")).await
    }

    /// Lets no job start for so long, wherever a rate limit holds. `None` ends the window under way: answers 1, or 0 when there is none.
    pub async fn hold(&self, ms: Option<u64>) -> Result<u64> {
        let ms = ms.map(|ms| ms.to_string());
        self.set_limit("window", ms.as_deref(), "").await
    }

    /// Sets how many jobs may wait: waiting, prioritized, delayed, or for their children. Adds past that are refused
    /// ([`Error::QueueFull`]). `None` = any number. Answers 1 when a setting came or went.
    pub async fn limit_length(&self, jobs: Option<u64>) -> Result<u64> {
        let jobs = jobs.map(|jobs| jobs.to_string());
        self.set_limit("length", jobs.as_deref(), "").await
    }

    async fn set_limit(&self, what: &str, value: Option<&str>, duration_ms: &str) -> Result<u64> {
        let args = [what, value.unwrap_or(""), duration_ms].map(Arg::from);
        Ok(self.int_once(&SET_LIMIT, None::<u64>, &args).await? as u64)
    }

    /// How long the window of the rate limit still lasts, ms: 0 while fewer than `max` jobs have started in it. Without a `max`, and without
    /// one of the queue's own: -2 when there is no window.
    pub async fn limit_left(&self, max: Option<&str>) -> Result<i64> {
        self.ask_int(&LIMIT_LEFT, &args![max.unwrap_or("")]).await
    }

    /// Every field of the queue's settings.
    pub async fn meta(&self) -> Result<Vec<(String, String)>> {
        let key = self.keys().key("meta");
        let flat = match self.connection().send(redis::cmd("HGETALL").arg(key)).await? {
            Value::Map(pairs) => pairs.into_iter().flat_map(|(field, value)| [field, value]).collect(),
            Value::Array(values) => values,
            other => return Err(Error::malformed("the queue's settings", shape(&other))),
        };
        let mut reply = Reply::new("the queue's settings", Value::Array(flat))?;
        let mut fields = Vec::with_capacity(reply.len() / 2);
        while !reply.is_empty() {
            fields.push((reply.text()?, reply.text()?));
        }
        Ok(fields)
    }

    /// Writes the queue's version, and the cap of its event log (events, approximate).
    pub async fn configure(&self, version: &str, max_events: u64) -> Result<()> {
        self.run(&CONFIGURE, &args![version, max_events]).await.map(drop)
    }
}
