//! Settings of workers.

use std::time::Duration;

use super::runner::Runner;
use crate::{
    id::unique_id,
    job::{keep::Keep, msgpack::Packer},
};

/// Settings of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Owner of the lease; no two workers share one.
    pub id: String,
    /// Shown as `processedBy`; may be empty.
    pub name: String,
    /// Jobs run at once.
    pub concurrency: u32,
    /// It may hold more of them, to be started soon, where they are short and no other worker is idle.
    pub takes_ahead: bool,
    /// How long a lease lasts when it is not renewed.
    pub lock_duration: Duration,
    /// The lease is renewed each half of this; `None` = never.
    pub lock_renew_time: Option<Duration>,
    /// Time between two scans for workers that are gone; `None` = this worker does not scan.
    pub stalled_interval: Option<Duration>,
    /// Times a job may be brought back before it fails.
    pub max_stalled_count: u32,
    /// A job that was started so often is not tried again when it fails.
    pub max_started_attempts: Option<u32>,
    /// Longest wait before an idle worker looks again.
    pub drain_delay: Duration,
    /// Retention of completed jobs that say nothing themselves.
    pub remove_on_complete: Keep,
    /// Retention of failed jobs that say nothing themselves.
    pub remove_on_fail: Keep,
    /// Who runs the jobs; workers that share an event loop share it.
    pub runner: Runner,
    /// Whoever hears the messages may watch what the worker hears by ([`super::Message::standby`]).
    pub watches_news: bool,
    /// How many jobs all workers of the queue that have a limiter may start in a while; `None` = this one heeds only the queue's own
    /// rate limit.
    pub limiter: Option<RateLimit>,
    /// What it heeds of groups that nothing was set for.
    pub group_rules: GroupRules,
    /// Longest sleep of a worker that a rate limit keeps from starting jobs.
    pub maximum_rate_limit_delay: Duration,
    /// Minutes for which [`crate::Queue::metrics`] knows what ended here; 0 = they are not counted.
    pub metrics_minutes: u32,
    /// Measures how long jobs take, for [`crate::Queue::latency`].
    pub measures_latency: bool,
    /// Measures it of each group of jobs by itself, too, where it is measured.
    pub measures_groups: bool,
}

/// At most `max` starts in a window of `duration`, which begins with the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Starts a window; 0 = as many as the queue's own rate limit says, in a window of this duration.
    pub max: u64,
    /// Length of a window; whole milliseconds.
    pub duration: Duration,
}

/// How many jobs of one group may run at once, and start in a window, over all workers that say so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupRules {
    /// Jobs that run at once; `None` = any number.
    pub concurrency: Option<u64>,
    /// Starts in a window; `None` = any number.
    pub limit: Option<RateLimit>,
    /// Jobs without a group have turns as a group has.
    pub fair: bool,
    /// A step takes jobs of one group, or such as have none.
    pub apart: bool,
}

impl GroupRules {
    /// As `lua/step/turns.lua` reads them.
    fn pack(self, packer: &mut Packer) {
        if self == Self::default() {
            packer.int(0);
            return;
        }
        let limit = self.limit;
        packer.array(5).int(self.concurrency.unwrap_or(0) as i64);
        packer.int(limit.map_or(0, |limit| limit.max as i64));
        packer.int(limit.map_or(0, |limit| limit.duration.as_millis() as i64));
        packer.int(i64::from(self.fair)).int(i64::from(self.apart));
    }
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            id: unique_id(),
            name: String::new(),
            concurrency: 1,
            takes_ahead: true,
            lock_duration: Duration::from_secs(30),
            lock_renew_time: Some(Duration::from_secs(15)),
            stalled_interval: Some(Duration::from_secs(30)),
            max_stalled_count: 1,
            max_started_attempts: None,
            drain_delay: Duration::from_secs(5),
            remove_on_complete: Keep::ALL,
            remove_on_fail: Keep::ALL,
            runner: Runner::default(),
            watches_news: false,
            limiter: None,
            group_rules: GroupRules::default(),
            maximum_rate_limit_delay: Duration::from_secs(30),
            metrics_minutes: 0,
            measures_latency: false,
            measures_groups: false,
        }
    }
}

/// What limits the starts of a worker, as `lua/transitions/step.lua` reads it.
pub(crate) fn pack_limits(packer: &mut Packer, limiter: Option<RateLimit>, group_rules: GroupRules) {
    if limiter.is_none() && group_rules == GroupRules::default() {
        packer.int(0);
        return;
    }
    packer
        .array(3)
        .int(limiter.map_or(0, |limiter| limiter.max as i64))
        .int(limiter.map_or(0, |limiter| limiter.duration.as_millis() as i64));
    group_rules.pack(packer);
}

/// What holds for jobs whose options do not say.
pub(crate) struct Defaults {
    pub(crate) remove_on_complete: Keep,
    pub(crate) remove_on_fail: Keep,
    pub(crate) max_started_attempts: Option<u32>,
    pub(crate) metrics_minutes: u32,
}

impl Defaults {
    pub(crate) fn of(options: &WorkerOptions) -> Self {
        Self {
            remove_on_complete: options.remove_on_complete,
            remove_on_fail: options.remove_on_fail,
            max_started_attempts: options.max_started_attempts,
            metrics_minutes: options.metrics_minutes,
        }
    }
}
