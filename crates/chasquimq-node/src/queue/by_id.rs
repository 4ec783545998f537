//! One job by its id, and its log.

use chasquimq::{millis, system_now_ms, RetryOptions};
use napi::{
    bindgen_prelude::{Either, Float64Array, Null, Object},
    Env, Result,
};
use napi_derive::napi;

use super::{commands::commands, look::LookCall, NativeQueue};
use crate::error::NativeError;

/// Rows of a log.
#[napi(object)]
pub struct NativeLogs {
    /// The rows asked for.
    pub logs: Vec<String>,
    /// Rows there are.
    pub count: f64,
}

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

    /// Adds rows to jobs' logs. Gives the number of rows behind each, or why there is none.
    #[napi(ts_return_type = "Promise<Array<number | NativeError>>")]
    pub fn add_logs<'env>(
        &self,
        env: &'env Env,
        ids: Vec<String>,
        rows: Vec<String>,
        keep_logs: Float64Array,
    ) -> Result<Object<'env>> {
        // the array is JavaScript's, and read on its thread
        let keep_logs = keep_logs.to_vec();
        self.call(env, async move |queue| {
            let rows = ids.iter().zip(&rows).zip(keep_logs);
            let rows: Vec<_> = rows
                .map(|((id, row), keep)| (id.as_str(), row.as_str(), keep as i64))
                .collect();
            let told = queue.log_rows(&rows).await?.into_iter().map(|count| match count {
                Ok(count) => Either::A(count as f64),
                Err(error) => Either::B(NativeError::from(&error)),
            });
            Ok(told.collect::<Vec<_>>())
        })
    }
}

commands! {
    /// A job's state, or `unknown`.
    async fn get_state(queue, id: String) -> String { queue.state(&id).await }

    /// 0 unfinished, 1 completed, 2 failed, -1 unknown; and the return value or the reason.
    async fn is_finished(queue, id: String) -> (i32, String) {
        let (state, text) = queue.outcome(&id).await?;
        let status = match state.as_str() {
            "completed" => 1,
            "failed" => 2,
            "unknown" => -1,
            _ => 0,
        };
        Ok((status, text))
    }

    /// Replaces a job's data.
    async fn update_data(queue, id: String, data: String) -> () {
        queue.update_data(system_now_ms(), &id, &data).await
    }

    /// Replaces a job's progress.
    async fn update_progress(queue, id: String, progress: String) -> () {
        queue.update_progress(system_now_ms(), &id, &progress).await
    }

    /// 1 removed or not there, 0 held by a worker, or a child is that it waits for.
    async fn remove(queue, id: String, remove_children: bool) -> f64 {
        Ok(flag(queue.remove(system_now_ms(), &id, remove_children).await?))
    }

    /// Id of the job that owns a deduplication id.
    async fn get_deduplication_job_id(queue, id: String) -> Either<String, Null> {
        Ok(queue.deduplication_owner(&id).await?.map_or(Either::B(Null), Either::A))
    }

    /// Frees a deduplication id, if that job owns it or none is named: 1, or 0.
    async fn remove_deduplication_key(queue, id: String, job_id: Option<String>) -> f64 {
        Ok(flag(queue.free_deduplication(&id, job_id.as_deref()).await?))
    }

    /// Gives a job another priority.
    async fn change_priority(queue, id: String, priority: f64, lifo: bool) -> () {
        queue.change_priority(&id, priority as i64, lifo).await
    }

    /// Retries a finished job.
    async fn retry_job(
        queue, id: String, state: String, lifo: bool, reset_attempts_made: bool, reset_attempts_started: bool, now: f64
    ) -> () {
        let retry = RetryOptions { front: lifo, reset_attempts_made, reset_attempts_started };
        queue.retry(now as u64, &id, &state, retry).await
    }

    /// Makes a delayed job wait.
    async fn promote(queue, id: String, now: f64) -> () { queue.promote(now as u64, &id).await }

    /// Changes when a delayed job is due.
    async fn change_delay(queue, id: String, delay: f64, now: f64) -> () {
        queue.change_delay(now as u64, &id, millis(delay)).await
    }

    /// Moves an active job to delayed.
    async fn move_to_delayed(queue, id: String, timestamp: f64, token: String, now: f64) -> () {
        queue.move_to_delayed(now as u64, &id, timestamp as u64, &token).await
    }

    /// Moves an active job to the head of the waiting list.
    async fn move_to_wait(queue, id: String, token: String, now: f64) -> f64 {
        Ok(queue.move_to_wait(now as u64, &id, &token).await? as f64)
    }

    /// Rows of a job's log.
    async fn get_logs(queue, id: String, start: f64, end: f64, asc: bool) -> NativeLogs {
        let (logs, count) = queue.logs(&id, start as i64, end as i64, asc).await?;
        Ok(NativeLogs { logs, count: count as f64 })
    }

    /// Deletes a job's log, all but its newest rows, or as many of its oldest.
    async fn clear_logs(queue, id: String, keep_logs: f64) -> () { queue.clear_logs(&id, keep_logs).await }
}

/// 1 or 0, as BullMQ's scripts answer.
fn flag(flag: bool) -> f64 {
    f64::from(u8::from(flag))
}
