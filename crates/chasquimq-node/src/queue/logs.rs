//! Jobs' logs.

use napi::{
    bindgen_prelude::{Object, Uint32Array},
    Env, Result,
};
use napi_derive::napi;

use super::NativeQueue;

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
    /// Adds rows to jobs' logs. Gives the number of rows behind each; -1: there is no such job.
    #[napi(ts_return_type = "Promise<number[]>")]
    pub fn add_logs<'env>(
        &self,
        env: &'env Env,
        ids: Vec<String>,
        rows: Vec<String>,
        keep_logs: Uint32Array,
    ) -> Result<Object<'env>> {
        let keep_logs = keep_logs.to_vec();
        self.call(env, async move |queue| {
            let rows: Vec<(&str, &str, u32)> = ids
                .iter()
                .zip(&rows)
                .zip(&keep_logs)
                .map(|((id, row), keep)| (id.as_str(), row.as_str(), *keep))
                .collect();
            let counts = queue.log_rows(&rows).await?;
            Ok(counts.into_iter().map(|count| count as f64).collect::<Vec<_>>())
        })
    }

    /// Rows of a job's log.
    #[napi(ts_return_type = "Promise<NativeLogs>")]
    pub fn get_logs<'env>(&self, env: &'env Env, id: String, start: f64, end: f64, asc: bool) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            let (logs, count) = queue.logs(&id, start as i64, end as i64, asc).await?;
            let count = count as f64;
            Ok(NativeLogs { logs, count })
        })
    }

    /// Deletes a job's log, or all but its newest rows.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn clear_logs<'env>(&self, env: &'env Env, id: String, keep_logs: u32) -> Result<Object<'env>> {
        self.call(env, async move |queue| queue.clear_logs(&id, keep_logs).await)
    }
}
