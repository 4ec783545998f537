//! Jobs' logs.

use napi::{
    bindgen_prelude::{Either, Float64Array, Object},
    Env, Result,
};
use napi_derive::napi;

use super::NativeQueue;
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
    /// Adds rows to jobs' logs. Gives the number of rows behind each, or why there is none.
    #[napi(ts_return_type = "Promise<Array<number | NativeError>>")]
    pub fn add_logs<'env>(
        &self,
        env: &'env Env,
        ids: Vec<String>,
        rows: Vec<String>,
        keep_logs: Float64Array,
    ) -> Result<Object<'env>> {
        let keep_logs = keep_logs.to_vec();
        self.call(env, async move |queue| {
            let rows: Vec<(&str, &str, i64)> = ids
                .iter()
                .zip(&rows)
                .zip(&keep_logs)
                .map(|((id, row), keep)| (id.as_str(), row.as_str(), *keep as i64))
                .collect();
            let counts = queue.log_rows(&rows).await?;
            let told = counts.into_iter().map(|count| match count {
                Ok(count) => Either::A(count as f64),
                Err(error) => Either::B(NativeError::from(&error)),
            });
            Ok(told.collect::<Vec<_>>())
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

    /// Deletes a job's log, all but its newest rows, or as many of its oldest.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn clear_logs<'env>(&self, env: &'env Env, id: String, keep_logs: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| queue.clear_logs(&id, keep_logs).await)
    }
}
