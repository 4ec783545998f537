//! How late a queue is: for how long jobs wait now, and how long they took.

use redis::cmd;

use super::Queue;
use crate::{
    error::Result,
    latency::{Latency, GROUP_MINUTES},
    redis::call::{
        library::{args, OLDEST_JOB},
        reply::Reply,
    },
};

/// The grains at which a span may be told: name, minutes, how many are kept (`lua/rules/latency.lua`).
type Grains = [(char, u64, u64); 3];
const OF_QUEUE: Grains = [('m', 1, 180), ('h', 60, 192), ('d', 1440, 92)];
const OF_GROUPS: Grains = [('f', GROUP_MINUTES, 36), ('h', 60, 48), ('d', 1440, 16)];
const MINUTE_MS: u64 = 60_000;

/// How long jobs took that ended in a span of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpanLatency {
    /// Begin of the span, epoch ms, a whole minute, hour or day.
    pub from_ms: u64,
    /// End of the span, epoch ms.
    pub to_ms: u64,
    /// The times.
    pub latency: Latency,
}

impl Queue {
    /// For how long the job has waited that could have started first of all that could start now, or of those of a group, ms; limits and a pause of the
    /// queue do not count. `None`: there is none.
    pub async fn oldest_ms(&self, now_ms: u64, group: Option<&str>) -> Result<Option<u64>> {
        let args = args![now_ms, group.unwrap_or("")];
        Ok(u64::try_from(self.ask_int(&OLDEST_JOB, &args).await?).ok())
    }

    /// What workers with [`crate::WorkerOptions::measures_latency`] measured of jobs that ended from `from_ms` until before `to_ms`. The bounds are rounded
    /// outwards, to minutes where `from_ms` is less than three hours ago, to hours where it is less than eight days, else to days. Of a group, as workers with
    /// [`crate::WorkerOptions::measures_groups`] measured: to five minutes, to hours where it is less than two days, else to days.
    pub async fn latency(&self, now_ms: u64, from_ms: u64, to_ms: u64, group: Option<&str>) -> Result<SpanLatency> {
        let grains = if group.is_some() { OF_GROUPS } else { OF_QUEUE };
        let key = group.map_or_else(|| "latency".into(), |group| format!("group-latency:{group}"));
        let grain = grains.into_iter().find(|(_, minutes, kept)| {
            let length = minutes * MINUTE_MS;
            from_ms / length + kept > now_ms / length
        });
        let (name, minutes, kept) = grain.unwrap_or(grains[2]);
        let length = minutes * MINUTE_MS;
        let end = to_ms.div_ceil(length).min(now_ms / length + 1);
        let start = (from_ms / length).max(end.saturating_sub(kept));
        let fields: Vec<_> = (start..end).map(|at| format!("{name}{at}")).collect();
        Ok(SpanLatency {
            from_ms: start * length,
            to_ms: end.max(start) * length,
            latency: self.stored_latency(&key, &fields).await?.unwrap_or_default(),
        })
    }

    /// The same of all jobs since workers measure. `None`: none does, or did.
    pub async fn latency_so_far(&self) -> Result<Option<Latency>> {
        self.stored_latency("latency", &["all".to_owned()]).await
    }

    async fn stored_latency(&self, key: &str, fields: &[String]) -> Result<Option<Latency>> {
        if fields.is_empty() {
            return Ok(None);
        }
        let mut read = cmd("HMGET");
        read.arg(self.keys().key(key)).arg(fields);
        let mut stored = Reply::new("times that jobs took", self.connection().send(&read).await?)?;
        let mut latency = None;
        while !stored.is_empty() {
            if let Some(raw) = stored.opt_bytes()? {
                latency.get_or_insert_with(Latency::default).add_stored(&raw)?;
            }
        }
        Ok(latency)
    }
}
