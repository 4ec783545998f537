//! Many jobs at once.

use chasquimq::{system_now_ms, Pick};
use napi::{bindgen_prelude::Object, Env, Result};
use napi_derive::napi;

use super::{job::to_jobs, NativeQueue};

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

#[napi]
impl NativeQueue {
    /// Deletes all of a queue that is paused.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn obliterate<'env>(&self, env: &'env Env, force: bool, count: u32) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            queue.obliterate_paused(system_now_ms(), force, count).await
        })
    }

    /// Removes what waits, and what is delayed if that is wanted.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn drain<'env>(&self, env: &'env Env, delayed: bool, now: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| queue.drain(now as u64, delayed).await)
    }

    /// Removes jobs of a state; gives their ids. A limit of 0 is none.
    #[napi(ts_return_type = "Promise<Array<string>>")]
    pub fn clean<'env>(
        &self,
        env: &'env Env,
        state: String,
        pick: NativePick,
        limit: f64,
        now: f64,
    ) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            queue.clean(now as u64, &state, &pick.into(), to_limit(limit)).await
        })
    }

    /// Retries finished jobs; gives their number. A limit of 0 is none.
    #[allow(clippy::too_many_arguments, reason = "the macro's copy has fewer")]
    #[napi(ts_return_type = "Promise<number>")]
    pub fn retry_jobs<'env>(
        &self,
        env: &'env Env,
        state: String,
        pick: NativePick,
        limit: f64,
        count: f64,
        reset: bool,
        now: f64,
    ) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            let (pick, limit) = (pick.into(), to_limit(limit));
            let moved = queue.retry_many(now as u64, &state, &pick, limit, count as u64, reset);
            Ok(moved.await? as f64)
        })
    }

    /// Failed jobs, the latest first.
    #[napi(ts_return_type = "Promise<Array<NativeJob>>")]
    pub fn find_failed<'env>(
        &self,
        env: &'env Env,
        pick: NativePick,
        skip: f64,
        take: f64,
        now: f64,
    ) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            let pick = pick.into();
            let found = queue.find_failed(now as u64, &pick, skip as u64, take as u64);
            Ok(to_jobs(found.await?))
        })
    }

    /// Number of failed jobs.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn count_failed<'env>(&self, env: &'env Env, pick: NativePick, now: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(queue.count_failed(now as u64, &pick.into()).await? as f64)
        })
    }

    /// Makes all delayed jobs wait.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn promote_jobs<'env>(&self, env: &'env Env, count: f64, now: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            queue.promote_many(now as u64, count as u64).await
        })
    }
}

/// 0 is none.
fn to_limit(limit: f64) -> Option<u64> {
    (limit > 0.0).then_some(limit as u64)
}
