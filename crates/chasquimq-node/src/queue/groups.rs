//! Groups of a queue.

use chasquimq::{system_now_ms, GroupSetting, GroupState, ListedGroup};
use napi_derive::napi;

use super::{commands::commands, NativeQueue};

/// A group with jobs.
#[napi(object, object_from_js = false)]
pub struct NativeListedGroup {
    /// Its name.
    pub id: String,
    /// `waiting`, `limited`, `maxed` or `paused`.
    pub status: String,
    /// Jobs that wait in it.
    pub jobs: f64,
}

impl From<ListedGroup> for NativeListedGroup {
    fn from(group: ListedGroup) -> Self {
        Self {
            id: group.id,
            status: group.status,
            jobs: group.jobs as f64,
        }
    }
}

/// Groups by rank.
#[napi(object, object_from_js = false)]
pub struct NativeGroups {
    /// Groups of each status that was asked for.
    pub counts: Vec<f64>,
    /// Those of the ranks.
    pub groups: Vec<NativeListedGroup>,
}

/// What is known of a group.
#[napi(object, object_from_js = false)]
pub struct NativeGroup {
    /// `waiting`, `limited`, `maxed` or `paused`; none: it has no jobs, and nothing limits it.
    pub status: Option<String>,
    /// Jobs that wait in it.
    pub jobs: f64,
    /// Jobs that run.
    pub active: f64,
    /// Turns to one of another group.
    pub weight: Option<f64>,
    /// Jobs that may be active at once, as was set for it.
    pub concurrency: Option<f64>,
    /// Starts in a window, as was set for it.
    pub max: Option<f64>,
    /// Ms of a window, as was set for it.
    pub duration: Option<f64>,
    /// Until it is limited no more, ms.
    pub limited_ms: f64,
    /// Starts in this window.
    pub starts: f64,
    /// Rest of this window, ms.
    pub window_ms: f64,
}

impl From<GroupState> for NativeGroup {
    fn from(group: GroupState) -> Self {
        let (max, duration) = group.limit.unzip();
        Self {
            status: group.status,
            jobs: group.jobs as f64,
            active: group.active as f64,
            weight: group.weight,
            concurrency: group.concurrency.map(|jobs| jobs as f64),
            max: max.map(|starts| starts as f64),
            duration: duration.map(|ms| ms as f64),
            limited_ms: group.limited_ms as f64,
            starts: group.starts as f64,
            window_ms: group.window_ms as f64,
        }
    }
}

commands! {
    /// Pauses or resumes a group; false when it was so before.
    async fn pause_group(queue, group: String, paused: bool) -> bool {
        queue.set_group(system_now_ms(), &group, GroupSetting::Paused(paused)).await
    }

    /// Sets or lifts the concurrency of a group.
    async fn set_group_concurrency(queue, group: String, jobs: Option<f64>) -> bool {
        let setting = GroupSetting::Concurrency(jobs.map(|jobs| jobs as u64));
        queue.set_group(system_now_ms(), &group, setting).await
    }

    /// Sets or lifts the rate limit of a group.
    async fn set_group_limit(queue, group: String, max: Option<f64>, duration: Option<f64>) -> bool {
        let limit = max.zip(duration).map(|(max, duration)| (max as u64, duration as u64));
        queue.set_group(system_now_ms(), &group, GroupSetting::Limit(limit)).await
    }

    /// Sets or lifts the weight of a group.
    async fn set_group_weight(queue, group: String, weight: Option<f64>) -> bool {
        queue.set_group(system_now_ms(), &group, GroupSetting::Weight(weight)).await
    }

    /// Starts none of a group's jobs for so many ms; 0: lifts the limit that it meets now.
    async fn limit_group(queue, group: String, ms: f64) -> bool {
        queue.set_group(system_now_ms(), &group, GroupSetting::Window(ms as u64)).await
    }

    /// Removes a group.
    async fn delete_group(queue, group: String) -> () { queue.delete_group(system_now_ms(), &group).await }

    /// Groups with jobs.
    async fn list_groups(queue, statuses: Vec<String>, start: f64, end: f64) -> NativeGroups {
        let (counts, groups) = queue.groups(&statuses, start as i64, end as i64).await?;
        Ok(NativeGroups {
            counts: counts.into_iter().map(|count| count as f64).collect(),
            groups: groups.into_iter().map(NativeListedGroup::from).collect(),
        })
    }

    /// One group.
    async fn get_group(queue, group: String) -> NativeGroup { Ok(queue.group(&group).await?.into()) }

    /// Number of jobs that wait in groups.
    async fn count_grouped(queue) -> f64 { Ok(queue.grouped_jobs().await? as f64) }
}
