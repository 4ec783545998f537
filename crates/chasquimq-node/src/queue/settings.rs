//! A queue's settings and limits.

use chasquimq::system_now_ms;
use napi::{bindgen_prelude::Object, Env, Result};
use napi_derive::napi;

use super::NativeQueue;
use crate::runtime::to_pairs;

#[napi]
impl NativeQueue {
    /// Writes the queue's version and event cap.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn set_meta<'env>(&self, env: &'env Env, version: String, max_len_events: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            queue.configure(&version, max_len_events as u64).await
        })
    }

    /// Every setting of the queue.
    #[napi(ts_return_type = "Promise<Array<[string, string]>>")]
    pub fn get_meta<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        self.call(env, async move |queue| Ok(to_pairs(queue.meta().await?)))
    }

    /// Sets or clears the queue's flag.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn pause<'env>(&self, env: &'env Env, paused: bool) -> Result<Object<'env>> {
        self.call(env, async move |queue| queue.pause(system_now_ms(), paused).await)
    }

    /// The queue's flag.
    #[napi(ts_return_type = "Promise<boolean>")]
    pub fn is_paused<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(queue.meta().await?.iter().any(|(field, _)| field == "paused"))
        })
    }

    /// Sets or lifts the global concurrency; answers how many settings came or went.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn limit_concurrency<'env>(&self, env: &'env Env, jobs: Option<String>) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(queue.limit_concurrency(jobs.as_deref()).await? as f64)
        })
    }

    /// Sets or lifts the global rate limit; answers how many settings came or went.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn limit_rate<'env>(
        &self,
        env: &'env Env,
        max: Option<String>,
        duration: Option<String>,
    ) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            let rate = max.as_deref().zip(duration.as_deref());
            Ok(queue.limit_rate(rate).await? as f64)
        })
    }

    /// Sets or lifts the maximum length; answers how many settings came or went.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn limit_length<'env>(&self, env: &'env Env, jobs: Option<f64>) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(queue.limit_length(jobs.map(|jobs| jobs as u64)).await? as f64)
        })
    }

    /// Uses up the window of the rate limit, or ends it; answers how many windows came or went.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn hold<'env>(&self, env: &'env Env, ms: Option<f64>) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(queue.hold(ms.map(|ms| ms as u64)).await? as f64)
        })
    }

    /// What is left of the window of the rate limit, ms.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn limit_left<'env>(&self, env: &'env Env, max: Option<String>) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(queue.limit_left(max.as_deref()).await? as f64)
        })
    }
}
