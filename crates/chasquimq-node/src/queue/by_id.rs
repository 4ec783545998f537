//! One job by its id.

use chasquimq::{millis, system_now_ms, RetryOptions};
use napi::{bindgen_prelude::Object, Env, Result};
use napi_derive::napi;

use super::{look::LookCall, NativeQueue};

#[napi]
impl NativeQueue {
    /// One job.
    #[napi(ts_return_type = "Promise<NativeJob | null>")]
    pub fn get_job<'env>(&self, env: &'env Env, id: String) -> Result<Object<'env>> {
        let runtime = self.runtime.get()?;
        let (found, promise) = env.create_deferred()?;
        self.adds.look(LookCall {
            id,
            queue: self.adds.queue().clone(),
            order: self.adds.order().clone(),
            hold: Box::new(self.adds.hold()),
            found,
            runtime,
        });
        Ok(promise)
    }

    /// A job's state, or `unknown`.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn get_state<'env>(&self, env: &'env Env, id: String) -> Result<Object<'env>> {
        self.call(env, async move |queue| queue.state(&id).await)
    }

    /// 0 unfinished, 1 completed, 2 failed, -1 unknown; and the return value or the reason.
    #[napi(ts_return_type = "Promise<[number, string]>")]
    pub fn is_finished<'env>(&self, env: &'env Env, id: String) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            let (state, text) = queue.outcome(&id).await?;
            let status = match state.as_str() {
                "completed" => 1,
                "failed" => 2,
                "unknown" => -1,
                _ => 0,
            };
            Ok((status, text))
        })
    }

    /// Replaces a job's data.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn update_data<'env>(&self, env: &'env Env, id: String, data: String) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            queue.update_data(system_now_ms(), &id, &data).await
        })
    }

    /// Replaces a job's progress.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn update_progress<'env>(&self, env: &'env Env, id: String, progress: String) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            queue.update_progress(system_now_ms(), &id, &progress).await
        })
    }

    /// 1 removed or not there, 0 held by a worker, or a child is that it waits for.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn remove<'env>(&self, env: &'env Env, id: String, remove_children: bool) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(flag(queue.remove(system_now_ms(), &id, remove_children).await?))
        })
    }

    /// Id of the job that owns a deduplication id.
    #[napi(ts_return_type = "Promise<string | null>")]
    pub fn get_deduplication_job_id<'env>(&self, env: &'env Env, id: String) -> Result<Object<'env>> {
        self.call(env, async move |queue| queue.deduplication_owner(&id).await)
    }

    /// Frees a deduplication id, if that job owns it or none is named: 1, or 0.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn remove_deduplication_key<'env>(
        &self,
        env: &'env Env,
        id: String,
        job_id: Option<String>,
    ) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(flag(queue.free_deduplication(&id, job_id.as_deref()).await?))
        })
    }

    /// Gives a job another priority.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn change_priority<'env>(&self, env: &'env Env, id: String, priority: f64, lifo: bool) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            queue.change_priority(&id, priority as i64, lifo).await
        })
    }

    /// Retries a finished job.
    #[allow(
        clippy::too_many_arguments,
        reason = "one argument each of BullMQ's call; the macro's copy has fewer"
    )]
    #[napi(ts_return_type = "Promise<void>")]
    pub fn retry_job<'env>(
        &self,
        env: &'env Env,
        id: String,
        state: String,
        lifo: bool,
        reset_attempts_made: bool,
        reset_attempts_started: bool,
        now: f64,
    ) -> Result<Object<'env>> {
        let retry = RetryOptions {
            front: lifo,
            reset_attempts_made,
            reset_attempts_started,
        };
        self.call(env, async move |queue| {
            queue.retry(now as u64, &id, &state, retry).await
        })
    }

    /// Makes a delayed job wait.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn promote<'env>(&self, env: &'env Env, id: String, now: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| queue.promote(now as u64, &id).await)
    }

    /// Changes when a delayed job is due.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn change_delay<'env>(&self, env: &'env Env, id: String, delay: f64, now: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            queue.change_delay(now as u64, &id, millis(delay)).await
        })
    }

    /// Moves an active job to delayed.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn move_to_delayed<'env>(
        &self,
        env: &'env Env,
        id: String,
        timestamp: f64,
        token: String,
        now: f64,
    ) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            queue.move_to_delayed(now as u64, &id, timestamp as u64, &token).await
        })
    }

    /// Moves an active job to the head of the waiting list.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn move_to_wait<'env>(&self, env: &'env Env, id: String, token: String, now: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(queue.move_to_wait(now as u64, &id, &token).await? as f64)
        })
    }
}

/// 1 or 0, as BullMQ's scripts answer.
fn flag(flag: bool) -> f64 {
    f64::from(u8::from(flag))
}
