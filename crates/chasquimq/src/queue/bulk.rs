//! Many jobs at once: drained, cleaned, retried, promoted. Each in steps that block the server for a few milliseconds; a step is
//! atomic, the whole is not. What is added while a call runs is not touched by it.

use redis::Value;

use super::Queue;
use crate::{
    active::{Active, Whose},
    clock::Moment,
    error::{Error, Result},
    job::msgpack::Packer,
    redis::call::{
        library::{args, Arg, Script, CLEAN_JOBS, OBLITERATE, PROMOTE_JOBS, RETRY_JOBS},
        reply::{shape, Reply},
    },
};

/// A `room` that is never used up.
const NO_LIMIT: u64 = 1 << 53;
/// Active jobs that a step looks at.
const ACTIVE_A_STEP: usize = 500;

/// A filter of `lua/rules/filter.lua` that knows a time alone: that one or earlier (epoch ms); none: any.
fn by_age(before_ms: Option<u64>) -> Packer {
    let mut packer = Packer::default();
    packer
        .map(2)
        .str("before_ms")
        .int(before_ms.map_or(-1, |ms| ms.min(NO_LIMIT) as i64));
    packer.str("after_ms").int(-1);
    packer
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
        let clear = |state| self.clear(now_ms, state, None, None, false);
        let clear_delayed = async {
            match delayed {
                true => clear("delayed").await,
                false => Ok(Vec::new()),
            }
        };
        let (waiting, later, ranked) = tokio::join!(clear("wait"), clear_delayed, clear("prioritized"));
        waiting.and(later).and(ranked).map(drop)
    }

    /// Removes the jobs of a state that ended, or else started, or else were created, at this time or before (epoch ms; none: all): those that would start
    /// first, or to have ended, first. Active jobs go when their worker is gone. Answers their ids. With a limit, no more than so many jobs are looked at; finished ones: removed.
    /// Costs a step for 500 records, or for 6,400 plain jobs in frames; for active ones a step for 500, behind those that list all that are
    /// active. Writes a `cleaned` event for 10,000 jobs.
    /// # Errors
    /// As [`Queue::counts`]; what was removed by then is gone.
    pub async fn clean(
        &self,
        now_ms: u64,
        state: &str,
        before_ms: Option<u64>,
        limit: Option<u64>,
    ) -> Result<Vec<String>> {
        self.clear(now_ms, state, before_ms, limit, true).await
    }

    async fn step(&self, script: &Script, now_ms: u64, args: &[Arg<'_>]) -> Result<Reply> {
        Reply::new("the answer to a step", self.run_once(script, now_ms, args).await?)
    }

    /// As [`Queue::clean`], without events and ids: gives none.
    pub(super) async fn clear(
        &self,
        now_ms: u64,
        state: &str,
        before_ms: Option<u64>,
        limit: Option<u64>,
        told: bool,
    ) -> Result<Vec<String>> {
        let filter = by_age(before_ms);
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
            let args = args![state, &filter, room, cursor.as_slice(), untold];
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

    /// Retries finished jobs (`failed` or `completed`) that ended at this time or before (epoch ms), those that ended first first, `count` a step
    /// (500 at most).
    /// # Errors
    /// As [`Queue::counts`]; what was moved by then waits.
    pub async fn retry_many(&self, now_ms: u64, state: &str, before_ms: u64, count: u64) -> Result<()> {
        loop {
            // what fails again meanwhile stays failed
            let args = args![state, before_ms.min(NO_LIMIT), count.max(1)];
            let mut reply = self.step(&RETRY_JOBS, now_ms, &args).await?;
            reply.int()?;
            if reply.int()? == 1 {
                return Ok(());
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
