//! A queue as a whole: its settings and limits, figures, clients and events.

use chasquimq::{system_now_ms, Metrics};
use napi_derive::napi;

use super::{commands::commands, NativeQueue};

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

commands! {
    /// Writes the queue's version and event cap.
    async fn set_meta(queue, version: String, max_len_events: f64) -> () {
        queue.configure(&version, max_len_events as u64).await
    }

    /// Every setting of the queue. JavaScript makes an object of it: of a stored name, `__proto__` say, must not become more than one.
    async fn get_meta(queue) -> Vec<(String, String)> { queue.meta().await }

    /// Sets or clears the queue's flag.
    async fn pause(queue, paused: bool) -> () { queue.pause(system_now_ms(), paused).await }

    /// The queue's flag.
    async fn is_paused(queue) -> bool { Ok(queue.meta().await?.iter().any(|(field, _)| field == "paused")) }

    /// Sets or lifts the global concurrency; answers how many settings came or went.
    async fn limit_concurrency(queue, jobs: Option<String>) -> f64 {
        Ok(queue.limit_concurrency(jobs.as_deref()).await? as f64)
    }

    /// Sets or lifts the global rate limit; answers how many settings came or went.
    async fn limit_rate(queue, max: Option<String>, duration: Option<String>) -> f64 {
        Ok(queue.limit_rate(max.as_deref().zip(duration.as_deref())).await? as f64)
    }

    /// Sets or lifts the maximum length; answers how many settings came or went.
    async fn limit_length(queue, jobs: Option<f64>) -> f64 {
        Ok(queue.limit_length(jobs.map(|jobs| jobs as u64)).await? as f64)
    }

    /// Uses up the window of the rate limit, or ends it; answers how many windows came or went.
    async fn hold(queue, ms: Option<f64>) -> f64 { Ok(queue.hold(ms.map(|ms| ms as u64)).await? as f64) }

    /// What is left of the window of the rate limit, ms.
    async fn limit_left(queue, max: Option<String>) -> f64 { Ok(queue.limit_left(max.as_deref()).await? as f64) }

    /// Finished jobs a minute.
    async fn get_metrics(queue, state: String, start: f64, end: f64) -> NativeMetrics {
        Ok(queue.metrics(&state, start as i64, end as i64).await?.into())
    }

    /// Connected workers, or readers of events, as the server describes its clients.
    async fn get_clients(queue, events: bool) -> Vec<Vec<(String, String)>> {
        if events { queue.event_clients().await } else { queue.worker_clients().await }
    }

    /// Names of the queues with this one's prefix.
    async fn queue_names(queue) -> Vec<String> { queue.names().await }

    /// Removes the oldest events; gives their number.
    async fn trim_events(queue, most: f64) -> f64 { Ok(queue.trim_events(most as u64).await? as f64) }

    /// Tells an event of the user's own; its fields, names and values in turn.
    async fn publish_event(queue, now: f64, name: String, fields: Vec<String>, max_events: f64) -> () {
        queue.publish_event(now as u64, &name, &fields, max_events as u64).await
    }

    /// The server's answer to `INFO`.
    async fn info(queue) -> String { queue.server_info().await }
}
