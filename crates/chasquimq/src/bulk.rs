//! Many jobs at once: drained, cleaned, retried, promoted. Each in steps that block the server for a few milliseconds; a step is
//! atomic, the whole is not. What is added while a call runs is not touched by it.

use std::collections::HashSet;

use crate::{
    active::{Active, Whose},
    error::Result,
    id::unique_id,
    job::Job,
    large,
    pack::Packer,
    queue::{pack_map, read_job, Queue},
    server::{
        reply::Reply,
        script::{Arg, Script, CLEAN_JOBS, FIND_FAILED, PROMOTE_JOBS, RETRY_JOBS},
    },
};

/// How long the server remembers the last step of a call that is over: a copy of it may still be under way on a connection that broke.
const FORGET_AFTER_MS: u64 = 60_000;
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
    fn by(&self, now_ms: u64) -> Self {
        Self {
            before_ms: self.before_ms.or(Some(now_ms)),
            ..self.clone()
        }
    }

    fn packed(&self) -> Vec<u8> {
        let time = |ms: Option<u64>| ms.map_or(-1, |ms| ms as i64);
        let mut packer = Packer::default();
        pack_map(&mut packer, if self.names.is_empty() { 3 } else { 4 });
        packer.str("before_ms").int(time(self.before_ms));
        packer.str("after_ms").int(time(self.after_ms));
        packer.str("error").str(&self.error);
        if !self.names.is_empty() {
            packer.str("names");
            let _ = rmp::encode::write_map_len(&mut packer.0, self.names.len() as u32);
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
    pack_map(&mut packer, 2).str("ids").array(some.len());
    for id in some {
        packer.str(id);
    }
    packer.str("last").int(i64::from(some.len() == ids.len()));
    packer.0
}

/// A call's steps, numbered, so that one that is sent again is not carried out twice.
struct Steps<'a> {
    queue: &'a Queue,
    client: String,
    number: i64,
}

impl<'a> Steps<'a> {
    fn new(queue: &'a Queue) -> Self {
        Self {
            queue,
            client: unique_id(),
            number: 0,
        }
    }

    async fn take(&mut self, script: &Script, now_ms: u64, rest: &[Arg<'_>]) -> Result<Reply> {
        self.number += 1;
        let mut args = vec![
            Arg::Int(now_ms as i64),
            Arg::from(self.client.as_str()),
            Arg::Int(self.number),
        ];
        args.extend_from_slice(rest);
        Reply::new("the answer to a step", self.queue.run(script, &args).await?)
    }

    async fn end(self) {
        let mut pipeline = redis::pipe();
        let key = self.queue.keys().key(&format!("memo:{}:b", self.client));
        pipeline.cmd("PEXPIRE").arg(key).arg(FORGET_AFTER_MS);
        // the server forgets by itself in an hour
        let _ = self.queue.connection().send_pipeline_once(&pipeline, 1).await;
    }
}

impl Queue {
    /// Removes every job that waits, with or without a priority, and with `delayed` those that are not due yet.
    /// Costs a step for 500 records, or for 6,400 plain jobs in frames.
    /// # Errors
    /// As [`Queue::counts`]; what was removed by then is gone.
    pub async fn drain(&self, now_ms: u64, delayed: bool) -> Result<()> {
        let all = Pick::default();
        for state in ["wait", "delayed", "prioritized"] {
            if delayed || state != "delayed" {
                self.clear(now_ms, state, &all, None, false).await?;
            }
        }
        Ok(())
    }

    /// Removes the jobs of a state that `pick` names, the first in line, or first to have ended, first. Active jobs go when their worker
    /// is gone. Answers their ids. With a limit, no more than so many jobs are looked at; finished ones: removed.
    /// Costs a step for 500 records, or for 6,400 plain jobs in frames; for active ones a step for 500, behind those that list all that are
    /// active. Writes a `cleaned` event for 10,000 jobs.
    /// # Errors
    /// As [`Queue::counts`]; what was removed by then is gone.
    pub async fn clean(&self, now_ms: u64, state: &str, pick: &Pick, limit: Option<u64>) -> Result<Vec<String>> {
        self.clear(now_ms, state, pick, limit, true).await
    }

    /// As [`Queue::clean`], without events and ids: gives none.
    async fn clear(
        &self,
        now_ms: u64,
        state: &str,
        pick: &Pick,
        limit: Option<u64>,
        told: bool,
    ) -> Result<Vec<String>> {
        let (filter, mut steps) = (pick.packed(), Steps::new(self));
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
            let args = [
                Arg::from(state),
                Arg::from(filter.as_slice()),
                Arg::Int(room as i64),
                Arg::from(cursor.as_slice()),
                Arg::Int(untold),
            ];
            let mut reply = steps.take(&CLEAN_JOBS, now_ms, &args).await?;
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
                steps.end().await;
                return Ok(ids);
            }
        }
    }

    /// Puts finished jobs (`failed` or `completed`) back in line, those that ended first first; at most `limit` of them, `count` a step
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
        let (mut moved, mut offset, mut steps) = (0, 0, Steps::new(self));
        loop {
            let args = [
                Arg::from(state),
                Arg::from(filter.as_slice()),
                Arg::Int(count.clamp(1, limit - moved) as i64),
                Arg::Int(offset),
                Arg::from(reset),
            ];
            let mut reply = steps.take(&RETRY_JOBS, now_ms, &args).await?;
            moved += reply.int()? as u64;
            offset = reply.int()?;
            if reply.int()? == 1 || moved >= limit {
                steps.end().await;
                return Ok(moved);
            }
        }
    }

    /// Failed jobs that `pick` names, the latest first: `take` of them behind the first `skip`. A step for 500 failed jobs.
    /// # Errors
    /// As [`Queue::job`].
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
        large::complete_all(self.connection(), self.keys(), jobs).await
    }

    /// Number of failed jobs that `pick` names. A step for 500 failed jobs.
    /// # Errors
    /// As [`Queue::counts`].
    pub async fn count_failed(&self, now_ms: u64, pick: &Pick) -> Result<u64> {
        let left = self.walk_failed(now_ms, pick, NO_LIMIT, NO_LIMIT, |_| Ok(())).await?;
        Ok(NO_LIMIT - left)
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
            let args = [
                Arg::from(filter.as_slice()),
                Arg::Int(offset),
                Arg::Int(skip as i64),
                Arg::Int(take as i64),
            ];
            let mut reply = Reply::new("the answer to find_failed", self.run(&FIND_FAILED, &args).await?)?;
            offset = reply.int()?;
            skip = reply.int()? as u64;
            let mut jobs = reply.array()?;
            while !jobs.is_empty() {
                found(&mut jobs)?;
                take -= 1;
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
            let args = [Arg::Int(now_ms as i64), Arg::Int(count.clamp(1, 500) as i64)];
            let mut reply = Reply::new("the answer to promote_jobs", self.run(&PROMOTE_JOBS, &args).await?)?;
            let (promoted, delayed) = (reply.int()?, reply.int()?);
            // what is delayed meanwhile does not keep the call going
            let still = left.map_or(delayed, |left: i64| left - promoted);
            left = Some(still);
            if promoted == 0 || still <= 0 {
                return Ok(());
            }
        }
    }
}
