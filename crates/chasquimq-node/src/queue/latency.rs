//! How late a queue is.

use chasquimq::{latency::Times, system_now_ms};
use napi_derive::napi;

use super::{commands::commands, NativeQueue};

/// Times of one kind, ms.
#[napi(object, object_from_js = false)]
pub struct NativeTimes {
    /// How many there are.
    pub count: f64,
    /// All of them together.
    pub sum: f64,
    /// The median, rounded up; none: there are no times.
    pub p50: Option<f64>,
    /// So many of hundred took at most this long.
    pub p95: Option<f64>,
    /// The same.
    pub p99: Option<f64>,
    /// Ends of the steps of the scale.
    pub ends: Vec<f64>,
    /// How many took at most that long.
    pub counts: Vec<f64>,
}

impl From<Times> for NativeTimes {
    fn from(times: Times) -> Self {
        let (ends, counts) = times
            .cumulative()
            .into_iter()
            .map(|(end, jobs)| (end, jobs as f64))
            .unzip();
        Self {
            count: times.count() as f64,
            sum: times.sum_ms as f64,
            p50: times.percentile_ms(50),
            p95: times.percentile_ms(95),
            p99: times.percentile_ms(99),
            ends,
            counts,
        }
    }
}

/// How long jobs took.
#[napi(object, object_from_js = false)]
pub struct NativeLatency {
    /// Begin of the span, epoch ms.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// In line.
    pub waiting: NativeTimes,
    /// Running.
    pub running: NativeTimes,
    /// To their end.
    pub completion: NativeTimes,
    /// Jobs that were added.
    pub added: f64,
}

fn native(from: f64, to: f64, latency: chasquimq::latency::Latency) -> NativeLatency {
    NativeLatency {
        from,
        to,
        waiting: latency.waiting.into(),
        running: latency.running.into(),
        completion: latency.completion.into(),
        added: latency.added as f64,
    }
}

commands! {
    /// For how long the job has waited that could have started first, ms; none: there is none.
    async fn oldest_ms(queue, now: f64, group: Option<String>) -> Option<f64> {
        Ok(queue.oldest_ms(now as u64, group.as_deref()).await?.map(|ms| ms as f64))
    }

    /// How long jobs took, or those of a group, that ended in a span of time, epoch ms.
    async fn get_latency(queue, now: f64, from: f64, to: f64, group: Option<String>) -> NativeLatency {
        let span = queue.latency(now as u64, from as u64, to as u64, group.as_deref()).await?;
        Ok(native(span.from_ms as f64, span.to_ms as f64, span.latency))
    }

    /// The same of all jobs so far; none: no worker measures, or did.
    async fn get_latency_so_far(queue) -> Option<NativeLatency> {
        let latency = queue.latency_so_far().await?;
        Ok(latency.map(|latency| native(0.0, system_now_ms() as f64, latency)))
    }
}
