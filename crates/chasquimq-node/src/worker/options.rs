//! What a worker is made from.

use std::time::Duration;

use chasquimq::{worker::Runner, GroupRules, Keep, RateLimit, WorkerOptions};
use napi_derive::napi;

use crate::connection::NativeConnection;

/// What a worker is made from.
#[napi(object, object_to_js = false)]
pub struct NativeWorkerOptions {
    /// Queue name.
    pub name: String,
    /// Key prefix.
    pub prefix: String,
    /// Server.
    pub connection: NativeConnection,
    /// Accept any server version.
    pub skip_version_check: Option<bool>,
    /// Owner of the lease.
    pub id: String,
    /// Shown as `processedBy`.
    pub worker_name: Option<String>,
    /// Jobs at once.
    pub concurrency: f64,
    /// Hold no more of them.
    pub takes_none_ahead: Option<bool>,
    /// Lease, ms.
    pub lock_duration: f64,
    /// The lease is renewed each half of this, ms.
    pub lock_renew_time: f64,
    /// Never renew.
    pub skip_lock_renewal: Option<bool>,
    /// Between scans, ms.
    pub stalled_interval: f64,
    /// Times a job may stall.
    pub max_stalled_count: u32,
    /// Never scan.
    pub skip_stalled_check: Option<bool>,
    /// Starts a job may have.
    pub max_started_attempts: Option<u32>,
    /// Longest idle wait, seconds.
    pub drain_delay: f64,
    /// JSON of the worker's retention.
    pub remove_on_complete: Option<String>,
    /// JSON of the worker's retention.
    pub remove_on_fail: Option<String>,
    /// Its own rate limit.
    pub limiter: Option<NativeRateLimit>,
    /// Jobs of one group at once.
    pub group_concurrency: Option<f64>,
    /// Rate limit of each group.
    pub group_limit: Option<NativeRateLimit>,
    /// Jobs without a group have turns, too.
    pub groups_fair: Option<bool>,
    /// A step takes jobs of one group.
    pub groups_apart: Option<bool>,
    /// Longest sleep while limited, ms.
    pub maximum_rate_limit_delay: f64,
    /// Minutes for which finished jobs are counted.
    pub metrics_minutes: Option<u32>,
    /// Measures how long jobs take.
    pub measures_latency: Option<bool>,
    /// Of each group by itself, too.
    pub measures_groups: Option<bool>,
}

/// A rate limit of a worker.
#[napi(object)]
#[derive(Clone, Copy)]
pub struct NativeRateLimit {
    /// Starts a window; 0 = as the queue says.
    pub max: f64,
    /// Length of a window, ms.
    pub duration: f64,
}

impl From<NativeRateLimit> for RateLimit {
    fn from(limit: NativeRateLimit) -> Self {
        Self {
            max: limit.max as u64,
            duration: Duration::from_millis(limit.duration as u64),
        }
    }
}

/// What a worker heeds of groups.
pub fn group_rules(
    concurrency: Option<f64>,
    limit: Option<NativeRateLimit>,
    fair: Option<bool>,
    apart: Option<bool>,
) -> GroupRules {
    GroupRules {
        concurrency: concurrency.map(|jobs| jobs as u64),
        limit: limit.map(RateLimit::from),
        fair: fair == Some(true),
        apart: apart == Some(true),
    }
}

/// Milliseconds with a fraction; below 0 none.
pub fn to_duration(ms: f64) -> Duration {
    Duration::from_micros((ms.max(0.0) * 1000.0) as u64)
}

thread_local! {
    /// Of all workers of this JavaScript thread.
    static RUNNER: Runner = Runner::default();
}

impl NativeWorkerOptions {
    /// The engine's form, on JavaScript's thread. `watches_news`: there is a shortcut for jobs.
    pub fn to_options(&self, watches_news: bool) -> WorkerOptions {
        let keep = |text: &Option<String>| text.as_ref().map_or(Keep::ALL, |text| Keep::from_text(text));
        WorkerOptions {
            id: self.id.clone(),
            name: self.worker_name.clone().unwrap_or_default(),
            concurrency: self.concurrency as u32,
            takes_ahead: self.takes_none_ahead != Some(true),
            lock_duration: to_duration(self.lock_duration),
            lock_renew_time: (self.skip_lock_renewal != Some(true)).then(|| to_duration(self.lock_renew_time)),
            stalled_interval: (self.skip_stalled_check != Some(true)).then(|| to_duration(self.stalled_interval)),
            max_stalled_count: self.max_stalled_count,
            max_started_attempts: self.max_started_attempts,
            drain_delay: to_duration(self.drain_delay * 1000.0),
            remove_on_complete: keep(&self.remove_on_complete),
            remove_on_fail: keep(&self.remove_on_fail),
            runner: RUNNER.with(Runner::clone),
            watches_news,
            limiter: self.limiter.map(RateLimit::from),
            group_rules: group_rules(
                self.group_concurrency,
                self.group_limit,
                self.groups_fair,
                self.groups_apart,
            ),
            maximum_rate_limit_delay: to_duration(self.maximum_rate_limit_delay),
            metrics_minutes: self.metrics_minutes.unwrap_or(0),
            measures_latency: self.measures_latency == Some(true),
            measures_groups: self.measures_groups == Some(true),
        }
    }
}
