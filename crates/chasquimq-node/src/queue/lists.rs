//! Jobs by state and rank, and their numbers.

use chasquimq::{millis, JobRange};
use napi::{bindgen_prelude::Object, Env, Result};
use napi_derive::napi;

use super::{job::to_jobs, NativeQueue};

#[napi]
impl NativeQueue {
    /// Jobs by state and rank.
    #[napi(ts_return_type = "Promise<Array<NativeJob>>")]
    pub fn get_jobs<'env>(
        &self,
        env: &'env Env,
        types: Vec<String>,
        start: f64,
        end: f64,
        asc: bool,
    ) -> Result<Object<'env>> {
        let range = to_range(types, start, end, asc);
        self.call(env, async move |queue| Ok(to_jobs(queue.jobs(&range).await?)))
    }

    /// Ids of jobs by state and rank.
    #[napi(ts_return_type = "Promise<Array<string>>")]
    pub fn get_ids<'env>(
        &self,
        env: &'env Env,
        types: Vec<String>,
        start: f64,
        end: f64,
        asc: bool,
    ) -> Result<Object<'env>> {
        let range = to_range(types, start, end, asc);
        self.call(env, async move |queue| queue.job_ids(&range).await)
    }

    /// Numbers of jobs, one for each state asked for.
    #[napi(ts_return_type = "Promise<Array<number>>")]
    pub fn get_counts<'env>(&self, env: &'env Env, types: Vec<String>) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            let counts = queue.counts().await?;
            let counts = types.iter().map(|state| counts.of(state).unwrap_or(0) as f64);
            Ok(counts.collect::<Vec<_>>())
        })
    }

    /// Numbers of waiting jobs with each of these priorities.
    #[napi(ts_return_type = "Promise<Array<number>>")]
    pub fn get_counts_per_priority<'env>(&self, env: &'env Env, priorities: Vec<f64>) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(to_numbers(queue.counts_per_priority(&priorities).await?))
        })
    }

    /// Number of delayed jobs due before then.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn count_delayed_before<'env>(&self, env: &'env Env, due: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(queue.delayed_before(millis(due)).await? as f64)
        })
    }
}

fn to_numbers(counts: Vec<u64>) -> Vec<f64> {
    counts.into_iter().map(|count| count as f64).collect()
}

fn to_range(types: Vec<String>, start: f64, end: f64, asc: bool) -> JobRange {
    JobRange {
        types,
        start: start as i64,
        stop: end as i64,
        ascending: asc,
    }
}
