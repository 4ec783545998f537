//! Jobs by state: their numbers, some by rank, and many changed at once.

use chasquimq::{millis, system_now_ms, JobRange};

use super::{
    commands::commands,
    job::{to_jobs, NativeJob},
    NativeQueue,
};

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

    /// Removes jobs of a state whose time is this one or earlier; gives their ids. A limit of 0 is none.
    async fn clean(queue, state: String, before: f64, limit: f64, now: f64) -> Vec<String> {
        queue.clean(now as u64, &state, Some(before as u64), to_limit(limit)).await
    }

    /// Retries finished jobs that ended then or earlier.
    async fn retry_jobs(queue, state: String, before: f64, count: f64, now: f64) -> () {
        queue.retry_many(now as u64, &state, before as u64, count as u64).await
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
