//! Jobs that are cancelled: what does not run fails for good, or goes, and of what runs its worker is told.

use super::Queue;
use crate::{
    error::{Error, Result},
    job::msgpack::Packer,
    redis::call::{
        library::{args, CANCEL_JOBS},
        reply::Reply,
    },
};

/// Jobs that one call cancels.
const JOBS_A_CALL: usize = 100;
/// Code of the next job of a scheduler.
const OF_SCHEDULER: i64 = -8;

/// What became of a job that was to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It did not run, and does not any more: it has failed for good, or is gone.
    Cancelled,
    /// It runs: its worker is told. It may complete; if it fails, it does so for good.
    Signalled,
    /// It had ended before.
    Ended,
    /// There is no such job.
    Missing,
}

impl Queue {
    /// Cancels a job; `remove`: it goes, unless it runs. `children`: behind it those that it waits for, directly or not, in steps.
    /// # Errors
    /// [`Error::OfScheduler`] for the next job of a scheduler that does not run yet.
    pub async fn cancel(&self, now_ms: u64, id: &str, reason: &str, remove: bool, children: bool) -> Result<Cancelled> {
        let became = self.cancel_named(now_ms, &[id], reason, remove, children).await?;
        let became = became.into_iter().next().flatten();
        became.ok_or_else(|| Error::from_code(OF_SCHEDULER, id, "", "cancelJob"))
    }

    /// The same of many, in order; `None`: one that stays, as it is the next job of a scheduler. A hundred go at once, and what they wait for behind them.
    pub async fn cancel_named(
        &self,
        now_ms: u64,
        ids: &[&str],
        reason: &str,
        remove: bool,
        children: bool,
    ) -> Result<Vec<Option<Cancelled>>> {
        let mut became = Vec::with_capacity(ids.len());
        for ids in ids.chunks(JOBS_A_CALL) {
            // a job that is gone tells of no children
            let below = if children {
                self.waited_for(ids).await?
            } else {
                Vec::new()
            };
            let named: Vec<[&str; 3]> = ids.iter().map(|id| [*id, "", ""]).collect();
            let codes = self.cancel_step(now_ms, reason, remove, &named).await?;
            became.extend(codes.into_iter().map(|code| match code {
                0 => Some(Cancelled::Missing),
                1 => Some(Cancelled::Cancelled),
                2 => Some(Cancelled::Signalled),
                3 => Some(Cancelled::Ended),
                _ => None,
            }));
            for some in below.chunks(JOBS_A_CALL) {
                let jobs: Vec<[&str; 3]> = some.iter().map(|of| of.each_ref().map(String::as_str)).collect();
                self.cancel_step(now_ms, reason, remove, &jobs).await?;
            }
        }
        Ok(became)
    }

    /// Jobs as `lua/transitions/cancel_jobs.lua` names them. Gives what became of each.
    async fn cancel_step(&self, now_ms: u64, reason: &str, remove: bool, jobs: &[[&str; 3]]) -> Result<Vec<i64>> {
        let mut codes = Vec::with_capacity(jobs.len());
        while codes.len() < jobs.len() {
            let left = &jobs[codes.len()..];
            let mut packed = Packer::default();
            packed.array(3 * left.len());
            for text in left.iter().flatten() {
                packed.str(text);
            }
            let args = args![reason, remove, &packed];
            let reply = self.run_once(&CANCEL_JOBS, now_ms, &args).await?;
            let before = codes.len();
            codes.extend(Reply::new(CANCEL_JOBS.name, reply)?.numbers());
            if codes.len() == before {
                return Err(Error::malformed(CANCEL_JOBS.name, "no answer"));
            }
        }
        Ok(codes)
    }
}
