//! Groups: what is set for one, what waits in them, and which of them have turns (`lua/states/groups.lua`).

use super::Queue;
use crate::{
    error::{Error, Result},
    job::msgpack::Packer,
    redis::call::{
        library::{args, Arg, LIST_GROUPS, READ_GROUP, SET_GROUP},
        reply::int,
    },
};

/// What may be set for one group.
#[derive(Debug, Clone, Copy)]
pub enum GroupSetting {
    /// None of its jobs starts.
    Paused(bool),
    /// Jobs that may be active at once; `None` = as the workers say.
    Concurrency(Option<u64>),
    /// Starts in a window, and ms of one; `None` = as the workers say.
    Limit(Option<(u64, u64)>),
    /// Turns that it has to one of another group; `None` = one.
    Weight(Option<f64>),
    /// Its limit is used up for so many ms; 0 = the limit that it meets now is lifted.
    Window(u64),
}

impl GroupSetting {
    /// What `lua/transitions/set_group.lua` is told: what, value, and a duration.
    fn texts(self) -> (&'static str, String, String) {
        let text = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
        match self {
            Self::Paused(paused) => (if paused { "pause" } else { "resume" }, String::new(), String::new()),
            Self::Concurrency(jobs) => ("concurrency", text(jobs), String::new()),
            Self::Limit(limit) => {
                let (max, duration_ms) = limit.unzip();
                ("limit", text(max), text(duration_ms))
            }
            Self::Weight(weight) => (
                "weight",
                weight.map_or(String::new(), |weight| weight.to_string()),
                String::new(),
            ),
            Self::Window(ms) => ("window", ms.to_string(), String::new()),
        }
    }
}

/// A group with jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    /// Its name.
    pub id: String,
    /// `waiting`, `limited`, `maxed` or `paused`.
    pub status: String,
    /// Jobs that wait in it.
    pub jobs: u64,
}

/// What is known of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupState {
    /// `waiting`, `limited`, `maxed` or `paused`; `None` = it has no jobs, and nothing limits it.
    pub status: Option<String>,
    /// Jobs that wait in it.
    pub jobs: u64,
    /// Jobs that run.
    pub active: u64,
    /// Turns to one of another group.
    pub weight: Option<f64>,
    /// Jobs that may be active at once, as was set for it.
    pub concurrency: Option<u64>,
    /// Starts in a window and ms of one, as was set for it.
    pub limit: Option<(u64, u64)>,
    /// Until it is limited no more, ms.
    pub limited_ms: u64,
    /// Starts in this window.
    pub starts: u64,
    /// Rest of this window, ms.
    pub window_ms: u64,
}

impl Queue {
    /// Sets it; false when it was set before.
    pub async fn set_group(&self, now_ms: u64, group: &str, setting: GroupSetting) -> Result<bool> {
        let (what, value, duration_ms) = setting.texts();
        let args = [group, what, &value, &duration_ms].map(Arg::from);
        Ok(self.int_once(&SET_GROUP, now_ms, &args).await? == 1)
    }

    /// Removes a group: the jobs that wait in it, what was set for it, and what was measured. Jobs that run go on, and delayed ones will make it anew.
    /// Costs a step for 500 jobs.
    pub async fn delete_group(&self, now_ms: u64, group: &str) -> Result<()> {
        self.clear_group(now_ms, group).await?;
        let args = [group, "forget", "", ""].map(Arg::from);
        self.int_once(&SET_GROUP, now_ms, &args).await.map(drop)
    }

    async fn clear_group(&self, now_ms: u64, group: &str) -> Result<()> {
        let state = format!("group:{group}");
        self.clear(now_ms, &state, None, None, false).await.map(drop)
    }

    /// Groups of these statuses by rank, one status behind the other, and how many groups each status has.
    pub async fn groups(&self, statuses: &[String], start: i64, stop: i64) -> Result<(Vec<u64>, Vec<ListedGroup>)> {
        let packed = Packer::of_texts(statuses.iter().map(String::as_str));
        let mut reply = self.ask(&LIST_GROUPS, &args![&packed, start, stop]).await?;
        let (mut counts, mut listed) = (reply.array()?, reply.array()?);
        let counts = statuses
            .iter()
            .map(|_| Ok(counts.int()? as u64))
            .collect::<Result<_>>()?;
        let mut groups = Vec::with_capacity(listed.len() / 3);
        while !listed.is_empty() {
            groups.push(ListedGroup {
                id: listed.text()?,
                status: listed.text()?,
                jobs: listed.int()? as u64,
            });
        }
        Ok((counts, groups))
    }

    /// One group.
    pub async fn group(&self, group: &str) -> Result<GroupState> {
        let mut reply = self.ask(&READ_GROUP, &args![group]).await?;
        let status = Some(reply.text()?).filter(|status| !status.is_empty());
        let (jobs, active) = (reply.int()? as u64, reply.int()? as u64);
        let weight = reply.text()?;
        let weight: f64 = weight
            .parse()
            .map_err(|error| Error::malformed("the weight of a group", error))?;
        let mut next = || reply.int().map(|number| number as u64);
        let (concurrency, max, duration_ms) = (next()?, next()?, next()?);
        Ok(GroupState {
            status,
            jobs,
            active,
            weight: Some(weight).filter(|weight| *weight > 0.0),
            concurrency: Some(concurrency).filter(|jobs| *jobs > 0),
            limit: Some((max, duration_ms)).filter(|(max, _)| *max > 0),
            limited_ms: next()?,
            starts: next()?,
            window_ms: next()?,
        })
    }

    /// Number of jobs that wait in groups.
    pub async fn grouped_jobs(&self) -> Result<u64> {
        let key = self.keys().key("grouped");
        let count = self.connection().send(redis::cmd("ZCARD").arg(key)).await?;
        Ok(int("the number of grouped jobs", &count)? as u64)
    }
}
