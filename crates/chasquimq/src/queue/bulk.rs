//! Many jobs at once: drained, cleaned, retried, promoted. Each in steps that block the server for a few milliseconds; a step is
//! atomic, the whole is not. What is added while a call runs is not touched by it.

use std::collections::HashSet;

use redis::Value;

use super::Queue;
use crate::{
    active::{Active, Whose},
    clock::Moment,
    error::{Error, Result},
    job::{msgpack::Packer, read_job, whole, Job},
    redis::call::{
        library::{args, Arg, Script, CLEAN_JOBS, FIND_FAILED, OBLITERATE, PROMOTE_JOBS, RETRY_JOBS},
        reply::{shape, Reply},
    },
};

/// A `room` that is never used up.
const NO_LIMIT: u64 = 1 << 53;
/// Active jobs that a step looks at.
const ACTIVE_A_STEP: usize = 500;

/// Which jobs of a state a call is about. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pick {
    /// Those that ended, or else started, or else were created, at this time or before, epoch ms.
    pub before_ms: Option<u64>,
    /// Those that did so at this time or later, epoch ms.
    pub after_ms: Option<u64>,
    /// Those with one of these names; empty: any. Only for finished jobs.
    pub names: Vec<String>,
    /// Those whose failed reason contains this text. Only for finished jobs.
    pub error: String,
}

impl Pick {
    /// The same, of what has happened by now.
    pub fn by(&self, now_ms: u64) -> Self {
        Self {
            before_ms: self.before_ms.or(Some(now_ms)),
            ..self.clone()
        }
    }

    fn packed(&self) -> Vec<u8> {
        let time = |ms: Option<u64>| ms.map_or(-1, |ms| ms.min(NO_LIMIT) as i64);
        let mut packer = Packer::default();
        packer.map(if self.names.is_empty() { 3 } else { 4 });
        packer.str("before_ms").int(time(self.before_ms));
        packer.str("after_ms").int(time(self.after_ms));
        packer.str("error").str(&self.error);
        if !self.names.is_empty() {
            packer.str("names");
            packer.map(self.names.len());
            for name in &self.names {
                packer.str(name);
                packer.0.push(0xc3);
            }
        }
        packer.0
    }
}

/// The first of these active jobs, for a step.
fn pack_active(ids: &[String]) -> Vec<u8> {
    let some = &ids[..ids.len().min(ACTIVE_A_STEP)];
    let mut packer = Packer::default();
    packer.map(2).str("ids").column(some.iter().map(String::as_str), false);
    packer.str("last").int(i64::from(some.len() == ids.len()));
    packer.0
}

impl Queue {
    /// Removes every job that waits, with or without a priority, and with `delayed` those that are not due yet.
    /// Costs a step for 500 records, or for 6,400 plain jobs in frames.
    /// # Errors
    /// As [`Queue::counts`]; what was removed by then is gone.
    pub async fn drain(&self, now_ms: u64, delayed: bool) -> Result<()> {
        let all = Pick::default();
        let clear = |state| self.clear(now_ms, state, &all, None, false);
        let clear_delayed = async {
            match delayed {
                true => clear("delayed").await,
                false => Ok(Vec::new()),
            }
        };
        let (waiting, later, ranked) = tokio::join!(clear("wait"), clear_delayed, clear("prioritized"));
        waiting.and(later).and(ranked).map(drop)
    }

    /// Removes the jobs of a state that `pick` names, those that would start first, or to have ended, first. Active jobs go when their worker
    /// is gone. Answers their ids. With a limit, no more than so many jobs are looked at; finished ones: removed.
    /// Costs a step for 500 records, or for 6,400 plain jobs in frames; for active ones a step for 500, behind those that list all that are
    /// active. Writes a `cleaned` event for 10,000 jobs.
    /// # Errors
    /// As [`Queue::counts`]; what was removed by then is gone.
    pub async fn clean(&self, now_ms: u64, state: &str, pick: &Pick, limit: Option<u64>) -> Result<Vec<String>> {
        self.clear(now_ms, state, pick, limit, true).await
    }

    async fn step(&self, script: &Script, now_ms: u64, args: &[Arg<'_>]) -> Result<Reply> {
        Reply::new("the answer to a step", self.run_once(script, now_ms, args).await?)
    }

    /// As [`Queue::clean`], without events and ids: gives none.
    pub(super) async fn clear(
        &self,
        now_ms: u64,
        state: &str,
        pick: &Pick,
        limit: Option<u64>,
        told: bool,
    ) -> Result<Vec<String>> {
        let filter = pick.packed();
        let (mut ids, mut cursor, mut untold) = (Vec::new(), Vec::new(), if told { 0 } else { -1 });
        let mut room = limit.unwrap_or(NO_LIMIT);
        let mut abandoned = match state {
            "active" => Some(Active::find(self.connection(), &self.keys().base, Whose::Nobody).await?),
            _ => None,
        };
        loop {
            if let Some(abandoned) = &abandoned {
                cursor = pack_active(abandoned);
            }
            let args = args![state, filter.as_slice(), room, cursor.as_slice(), untold];
            let mut reply = self.step(&CLEAN_JOBS, now_ms, &args).await?;
            ids.extend(reply.array()?.texts()?);
            reply.int()?;
            let looked = reply.int()? as u64;
            room = room.saturating_sub(looked);
            if let Some(abandoned) = &mut abandoned {
                abandoned.drain(..abandoned.len().min(looked as usize));
            }
            cursor = reply.bytes()?;
            untold = reply.int()?;
            if cursor.is_empty() {
                return Ok(ids);
            }
        }
    }

    /// Retries finished jobs (`failed` or `completed`), those that ended first first; at most `limit` of them, `count` a step
    /// (500 at most). With `reset`, their tries and starts count from 0 again. Answers how many.
    /// # Errors
    /// As [`Queue::counts`]; what was moved by then waits.
    pub async fn retry_many(
        &self,
        now_ms: u64,
        state: &str,
        pick: &Pick,
        limit: Option<u64>,
        count: u64,
        reset: bool,
    ) -> Result<u64> {
        let limit = limit.unwrap_or(NO_LIMIT);
        if limit == 0 {
            return Ok(0);
        }
        // what fails again meanwhile stays failed
        let filter = pick.by(now_ms).packed();
        let (mut moved, mut offset) = (0, 0);
        loop {
            let args = args![state, filter.as_slice(), count.clamp(1, limit - moved), offset, reset];
            let mut reply = self.step(&RETRY_JOBS, now_ms, &args).await?;
            moved = moved.saturating_add(reply.int()?.max(0) as u64);
            offset = reply.int()?;
            if reply.int()? == 1 || moved >= limit {
                return Ok(moved);
            }
        }
    }

    /// Failed jobs that `pick` names, the latest first: `take` of them behind the first `skip`. A step for 500 failed jobs.
    pub async fn find_failed(&self, now_ms: u64, pick: &Pick, skip: u64, take: u64) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        let mut seen = HashSet::new();
        self.walk_failed(now_ms, pick, skip, take, |reply| {
            if let Some(job) = read_job(reply)? {
                if seen.insert(job.id.clone()) {
                    jobs.push(job);
                }
            }
            Ok(())
        })
        .await?;
        whole::complete_all(self.connection(), self.keys(), jobs).await
    }

    /// Number of failed jobs that `pick` names. A step for 500 failed jobs.
    pub async fn count_failed(&self, now_ms: u64, pick: &Pick) -> Result<u64> {
        let none = |_: &mut Reply| Err(Error::malformed(FIND_FAILED.name, "a job that is passed over"));
        let left = self.walk_failed(now_ms, pick, NO_LIMIT, NO_LIMIT, none).await?;
        Ok(NO_LIMIT.saturating_sub(left))
    }

    /// Gives what is left of `skip`.
    async fn walk_failed(
        &self,
        now_ms: u64,
        pick: &Pick,
        mut skip: u64,
        mut take: u64,
        mut found: impl FnMut(&mut Reply) -> Result<()>,
    ) -> Result<u64> {
        // what fails meanwhile would shift the others
        let filter = pick.by(now_ms).packed();
        let mut offset = 0;
        loop {
            let args = args![filter.as_slice(), offset, skip, take];
            let mut reply = self.ask(&FIND_FAILED, &args).await?;
            offset = reply.int()?;
            skip = reply.int()? as u64;
            let mut jobs = reply.array()?;
            while !jobs.is_empty() {
                take = take
                    .checked_sub(1)
                    .ok_or_else(|| Error::malformed(FIND_FAILED.name, "more jobs than were asked for"))?;
                found(&mut jobs)?;
            }
            if offset < 0 {
                return Ok(skip);
            }
        }
    }

    /// Makes every delayed job wait, those due first first, `count` a step.
    /// # Errors
    /// As [`Queue::counts`]; what was moved by then waits.
    pub async fn promote_many(&self, now_ms: u64, count: u64) -> Result<()> {
        let mut left = None;
        loop {
            // a step that is sent again promotes the next jobs, which is what the call is for
            let args = args![now_ms, count.clamp(1, 500)];
            let mut reply = self.ask(&PROMOTE_JOBS, &args).await?;
            let (promoted, delayed) = (reply.int()?, reply.int()?);
            // what is delayed meanwhile does not keep the call going
            let still = left.map_or(delayed, |left: i64| left.saturating_sub(promoted));
            left = Some(still);
            if promoted == 0 || still <= 0 {
                return Ok(());
            }
        }
    }

    /// Pauses the queue, then deletes all of it, in one step, or in steps of `count` (1,000 at most) jobs that ran or have a log.
    /// # Errors
    /// [`Error::ActiveJobs`] unless `force`; [`Error::NotPaused`] when somebody resumes the queue meanwhile.
    pub async fn obliterate(&self, now_ms: u64, force: bool, count: u32) -> Result<()> {
        self.pause(now_ms, true).await?;
        self.obliterate_paused(now_ms, force, count).await
    }

    /// The same of a queue that is paused.
    pub async fn obliterate_paused(&self, now_ms: u64, force: bool, count: u32) -> Result<()> {
        let mut cursor = b"0".to_vec();
        loop {
            let args = args![i64::from(count.max(1)), force, cursor.as_slice()];
            let sent = Moment::now();
            match self.run_once(&OBLITERATE, now_ms, &args).await? {
                Value::Int(done @ (0 | 1)) => {
                    self.forget_calls().await;
                    if done == 0 {
                        self.forget_calls_before(sent).await;
                    }
                    return Ok(());
                }
                Value::Int(-1) => return Err(Error::NotPaused),
                Value::Int(-2) => return Err(Error::ActiveJobs),
                Value::BulkString(next) => cursor = next,
                other => return Err(Error::malformed("the answer to obliterate", shape(&other))),
            }
        }
    }
}
