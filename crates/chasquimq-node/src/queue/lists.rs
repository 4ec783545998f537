//! Jobs by state: their numbers, some by rank, and many changed at once.

use chasquimq::{millis, system_now_ms, JobRange, Pick};
use napi_derive::napi;

use super::{
    commands::commands,
    job::{to_jobs, NativeJob},
    NativeQueue,
};

/// Which jobs of a state a call is about.
#[napi(object)]
pub struct NativePick {
    /// Ended, or started, or created then or before, epoch ms.
    pub before: Option<f64>,
    /// Ended, or started, or created then or later, epoch ms.
    pub after: Option<f64>,
    /// Has one of these names.
    pub names: Option<Vec<String>>,
    /// Failed for a reason that contains this text.
    pub error: Option<String>,
}

impl From<NativePick> for Pick {
    fn from(pick: NativePick) -> Self {
        Self {
            before_ms: pick.before.map(|ms| ms as u64),
            after_ms: pick.after.map(|ms| ms as u64),
            names: pick.names.unwrap_or_default(),
            error: pick.error.unwrap_or_default(),
        }
    }
}

commands! {
    /// Jobs by state and rank.
    async fn get_jobs(queue, types: Vec<String>, start: f64, end: f64, asc: bool) -> Vec<NativeJob> {
        Ok(to_jobs(queue.jobs(&to_range(types, start, end, asc)).await?))
    }

    /// Ids of jobs by state and rank.
    async fn get_ids(queue, types: Vec<String>, start: f64, end: f64, asc: bool) -> Vec<String> {
        queue.job_ids(&to_range(types, start, end, asc)).await
    }

    /// Numbers of jobs, one for each state asked for.
    async fn get_counts(queue, types: Vec<String>) -> Vec<f64> {
        let counts = queue.counts().await?;
        Ok(types.iter().map(|state| counts.of(state).unwrap_or(0) as f64).collect())
    }

    /// Numbers of waiting jobs with each of these priorities, of a group or of those that have none.
    async fn get_counts_per_priority(queue, priorities: Vec<f64>, group: Option<String>) -> Vec<f64> {
        let counts = queue.counts_per_priority(&priorities, group.as_deref()).await?;
        Ok(counts.into_iter().map(|count| count as f64).collect())
    }

    /// Number of delayed jobs due before then.
    async fn count_delayed_before(queue, due: f64) -> f64 { Ok(queue.delayed_before(millis(due)).await? as f64) }

    /// Deletes all of a queue that is paused.
    async fn obliterate(queue, force: bool, count: u32) -> () {
        queue.obliterate_paused(system_now_ms(), force, count).await
    }

    /// Removes what waits, and what is delayed if that is wanted.
    async fn drain(queue, delayed: bool, now: f64) -> () { queue.drain(now as u64, delayed).await }

    /// Removes jobs of a state; gives their ids. A limit of 0 is none.
    async fn clean(queue, state: String, pick: NativePick, limit: f64, now: f64) -> Vec<String> {
        queue.clean(now as u64, &state, &pick.into(), to_limit(limit)).await
    }

    /// Retries finished jobs; gives their number. A limit of 0 is none.
    async fn retry_jobs(
        queue, state: String, pick: NativePick, limit: f64, count: f64, reset: bool, now: f64
    ) -> f64 {
        let (pick, limit) = (pick.into(), to_limit(limit));
        Ok(queue.retry_many(now as u64, &state, &pick, limit, count as u64, reset).await? as f64)
    }

    /// Failed jobs, the latest first.
    async fn find_failed(queue, pick: NativePick, skip: f64, take: f64, now: f64) -> Vec<NativeJob> {
        Ok(to_jobs(queue.find_failed(now as u64, &pick.into(), skip as u64, take as u64).await?))
    }

    /// Number of failed jobs.
    async fn count_failed(queue, pick: NativePick, now: f64) -> f64 {
        Ok(queue.count_failed(now as u64, &pick.into()).await? as f64)
    }

    /// Makes all delayed jobs wait.
    async fn promote_jobs(queue, count: f64, now: f64) -> () { queue.promote_many(now as u64, count as u64).await }
}

/// 0 is none.
fn to_limit(limit: f64) -> Option<u64> {
    (limit > 0.0).then_some(limit as u64)
}

fn to_range(types: Vec<String>, start: f64, end: f64, asc: bool) -> JobRange {
    JobRange {
        types,
        start: start as i64,
        stop: end as i64,
        ascending: asc,
    }
}
