//! A queue's figures, clients and events.

use chasquimq::Metrics;
use napi::{bindgen_prelude::Object, Env, Result};
use napi_derive::napi;

use super::NativeQueue;
use crate::runtime::to_pairs;

/// Finished jobs a minute.
#[napi(object)]
pub struct NativeMetrics {
    /// Jobs since counting began.
    pub count: f64,
    /// Start of the last new minute, epoch ms.
    pub prev_ts: f64,
    /// Jobs before it.
    pub prev_count: f64,
    /// Jobs a minute, newest first.
    pub data: Vec<f64>,
    /// Minutes there are.
    pub minutes: f64,
}

impl From<Metrics> for NativeMetrics {
    fn from(metrics: Metrics) -> Self {
        Self {
            count: metrics.count as f64,
            prev_ts: metrics.prev_ms as f64,
            prev_count: metrics.prev_count as f64,
            data: metrics.data.iter().map(|count| *count as f64).collect(),
            minutes: metrics.minutes as f64,
        }
    }
}

#[napi]
impl NativeQueue {
    /// Finished jobs a minute.
    #[napi(ts_return_type = "Promise<NativeMetrics>")]
    pub fn get_metrics<'env>(&self, env: &'env Env, state: String, start: f64, end: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            Ok(NativeMetrics::from(
                queue.metrics(&state, start as i64, end as i64).await?,
            ))
        })
    }

    /// Connected workers, or readers of events, as the server describes its clients.
    #[napi(ts_return_type = "Promise<Array<Array<[string, string]>>>")]
    pub fn get_clients<'env>(&self, env: &'env Env, events: bool) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            let clients = if events {
                queue.event_clients().await
            } else {
                queue.worker_clients().await
            };
            Ok(clients?.into_iter().map(to_pairs).collect::<Vec<_>>())
        })
    }

    /// Names of the queues with this one's prefix.
    #[napi(ts_return_type = "Promise<Array<string>>")]
    pub fn queue_names<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        self.call(env, async move |queue| queue.names().await)
    }

    /// Removes the oldest events; gives their number.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn trim_events<'env>(&self, env: &'env Env, most: f64) -> Result<Object<'env>> {
        self.call(env, async move |queue| Ok(queue.trim_events(most as u64).await? as f64))
    }

    /// Tells an event of the user's own; its fields, names and values in turn.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn publish_event<'env>(
        &self,
        env: &'env Env,
        now: f64,
        name: String,
        fields: Vec<String>,
        max_events: f64,
    ) -> Result<Object<'env>> {
        self.call(env, async move |queue| {
            queue.publish_event(now as u64, &name, &fields, max_events as u64).await
        })
    }

    /// The server's answer to `INFO`.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn info<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        self.call(env, async move |queue| queue.server_info().await)
    }
}
