//! Jobs of a state that a filter picks: found, counted, and changed, a step at a time. A step blocks the server for a few milliseconds and is atomic;
//! whoever takes the steps may stop between two of them.

use redis::Value;

use super::Queue;
use crate::{
    error::{Error, Result},
    job::{msgpack::Packer, read_job, whole, Job},
    keys::{qualified_name, slot_of},
    redis::call::{
        library::{args, CHANGE_JOBS, FIND_JOBS},
        reply::Reply,
    },
};

/// Which jobs of a state a call is about: those for which all that is given is true. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pick {
    /// Their time is this one or earlier, epoch ms: when they ended or, while they are active, started, or else were created.
    pub before_ms: Option<u64>,
    /// Their time is this one or later, epoch ms.
    pub after_ms: Option<u64>,
    /// They have one of these names; empty: any.
    pub names: Vec<String>,
    /// Their data, JSON text, contain this text.
    pub data: Option<String>,
    /// JSON text of an object: their data have these fields, with these values.
    pub fields: Option<String>,
    /// Their failed reason contains this text.
    pub reason: Option<String>,
    /// They are of this group.
    pub group: Option<String>,
    /// They are children of a job: the base of its queue ([`Keys`](crate::Keys)), and its id.
    pub parent: Option<(String, String)>,
}

impl Pick {
    /// The same, of what has happened by now.
    pub fn by(&self, now_ms: u64) -> Self {
        Self {
            before_ms: self.before_ms.or(Some(now_ms)),
            ..self.clone()
        }
    }

    /// As `lua/rules/filter.lua` reads it.
    fn packed(&self) -> Packer {
        let texts = [
            ("data", &self.data),
            ("fields", &self.fields),
            ("reason", &self.reason),
            ("group", &self.group),
        ];
        let given: Vec<(&str, &String)> = texts
            .into_iter()
            .filter_map(|(name, text)| Some((name, text.as_ref()?)))
            .collect();
        let others = usize::from(!self.names.is_empty()) + usize::from(self.parent.is_some());
        let mut packer = Packer::default();
        packer.map(2 + given.len() + others);
        packer.str("before_ms").int(to_time(self.before_ms));
        packer.str("after_ms").int(to_time(self.after_ms));
        for (name, text) in given {
            packer.str(name).str(text);
        }
        if let Some((base, id)) = &self.parent {
            packer.str("parent").array(2).str(base).str(id);
        }
        if !self.names.is_empty() {
            packer.str("names").map(self.names.len());
            for name in &self.names {
                packer.str(name).0.push(TRUE);
            }
        }
        packer
    }
}

/// As MessagePack has it.
const TRUE: u8 = 0xc3;

/// -1: any.
fn to_time(ms: Option<u64>) -> i64 {
    ms.map_or(-1, |ms| ms.min(1 << 53) as i64)
}

/// What becomes of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// They are gone, but for what somebody holds, and the next jobs of schedulers. Their children stay.
    Remove,
    /// Failed and completed ones wait again; `reset`: their tries and starts count from 0 again.
    Retry {
        /// See there.
        reset: bool,
    },
    /// Delayed ones wait.
    Promote,
    /// Those that do not run have failed for good, or are gone; those that run are to end, of which their workers are told. The next jobs of
    /// schedulers stay, unless they run.
    Cancel {
        /// Why; may be empty.
        reason: &'a str,
        /// What does not run is gone.
        remove: bool,
    },
    /// They are jobs of the queue with this base, on the same server and, in a cluster, in the same slot; not those that are active, wait for children or
    /// belong to other jobs.
    Move(&'a str),
}

/// What a step has done.
#[derive(Debug, Clone, PartialEq)]
pub struct Picked<T> {
    /// Where the next step goes on (JSON); empty: all jobs of the state were looked at.
    pub place: String,
    /// Jobs that it looked at.
    pub looked: u64,
    /// Jobs that the filter picked.
    pub picked: u64,
    /// These jobs, or what was done to which.
    pub found: T,
}

impl Queue {
    /// Finds jobs of a state: `take` of them at most, what ended last or starts first first. `place`: where the step before ended; empty: the first step.
    /// # Errors
    /// As [`Queue::counts`].
    pub async fn find_step(&self, state: &str, pick: &Pick, place: &str, take: u64) -> Result<Picked<Vec<Job>>> {
        let (step, mut reply) = self.pick_step(state, pick, place, take, false).await?;
        let (mut jobs, mut found) = (Vec::new(), reply.array()?);
        while !found.is_empty() {
            jobs.extend(read_job(&mut found)?);
        }
        let found = whole::complete_all(self.connection(), self.keys(), jobs).await?;
        Ok(step.with(found))
    }

    /// Counts jobs of a state as [`Queue::find_step`] finds them: `take` of them at most.
    /// # Errors
    /// As [`Queue::counts`].
    pub async fn count_step(&self, state: &str, pick: &Pick, place: &str, take: u64) -> Result<Picked<()>> {
        Ok(self.pick_step(state, pick, place, take, true).await?.0)
    }

    async fn pick_step(
        &self,
        state: &str,
        pick: &Pick,
        place: &str,
        take: u64,
        counts_only: bool,
    ) -> Result<(Picked<()>, Reply)> {
        let filter = pick.packed();
        let args = args![state, &filter, place, take.min(1 << 53), counts_only];
        let mut reply = self.ask(&FIND_JOBS, &args).await?;
        Ok((Picked::read(&mut reply)?, reply))
    }

    /// Changes jobs of a state: `room` of them are picked at most, what ended or starts first first. Gives the ids of those that were changed.
    /// # Errors
    /// As [`Queue::counts`].
    pub async fn change_step(
        &self,
        now_ms: u64,
        change: Change<'_>,
        state: &str,
        pick: &Pick,
        (place, room): (&str, u64),
    ) -> Result<Picked<Vec<String>>> {
        let (action, reset, target) = match change {
            Change::Remove => ("remove", false, ""),
            Change::Retry { reset } => ("retry", reset, ""),
            Change::Promote => ("promote", false, ""),
            Change::Cancel { reason, remove } => ("cancel", remove, reason),
            Change::Move(base) => ("move", false, base),
        };
        if action == "move" && self.connection().is_of_cluster() {
            self.check_slot(target)?;
        }
        let filter = pick.packed();
        let args = args![action, state, &filter, place, room.min(1 << 53), reset, target];
        let reply: Value = self.run_once(&CHANGE_JOBS, now_ms, &args).await?;
        let mut reply = Reply::new(CHANGE_JOBS.name, reply)?;
        let step = Picked::read(&mut reply)?;
        Ok(step.with(reply.array()?.texts()?))
    }

    /// # Errors
    /// [`Error::Invalid`] when no single node of a cluster has both queues.
    fn check_slot(&self, target: &str) -> Result<()> {
        let base = &self.keys().base;
        if slot_of(target) == slot_of(base) {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "CROSSSLOT Jobs are moved within one hash slot of the cluster, and {} does not lie where {} does: give the queues a prefix with a hash \
             tag, such as {{bull}}",
            qualified_name(target),
            qualified_name(base)
        )))
    }

    /// Takes all steps of such a change, up to `limit` jobs; what ended behind `now_ms` stays. Gives the ids of those that were changed.
    /// # Errors
    /// As [`Queue::counts`]; what was changed by then stays so.
    pub async fn change_all(
        &self,
        now_ms: u64,
        change: Change<'_>,
        state: &str,
        pick: &Pick,
        limit: Option<u64>,
    ) -> Result<Vec<String>> {
        let (pick, mut place, mut ids) = (pick.by(now_ms), String::new(), Vec::new());
        let mut room = limit.unwrap_or(u64::MAX);
        while room > 0 {
            let step = self.change_step(now_ms, change, state, &pick, (&place, room)).await?;
            room = room.saturating_sub(step.found.len() as u64);
            ids.extend(step.found);
            place = step.place;
            if place.is_empty() {
                break;
            }
        }
        Ok(ids)
    }
}

impl Picked<()> {
    fn read(reply: &mut Reply) -> Result<Self> {
        let place = reply.text()?;
        let (looked, picked) = (reply.int()?.max(0) as u64, reply.int()?.max(0) as u64);
        Ok(Self {
            place,
            looked,
            picked,
            found: (),
        })
    }

    fn with<T>(self, found: T) -> Picked<T> {
        Picked {
            place: self.place,
            looked: self.looked,
            picked: self.picked,
            found,
        }
    }
}
