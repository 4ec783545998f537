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
        // a job that is gone tells of no children
        let below = if children {
            self.waited_for(id).await?
        } else {
            Vec::new()
        };
        let codes = self.cancel_step(now_ms, reason, remove, &[[id, "", ""]]).await?;
        for some in below.chunks(JOBS_A_CALL) {
            let jobs: Vec<[&str; 3]> = some.iter().map(|of| of.each_ref().map(String::as_str)).collect();
            self.cancel_step(now_ms, reason, remove, &jobs).await?;
        }
        match codes.first() {
            Some(0) | None => Ok(Cancelled::Missing),
            Some(1) => Ok(Cancelled::Cancelled),
            Some(2) => Ok(Cancelled::Signalled),
            Some(3) => Ok(Cancelled::Ended),
            Some(code) => Err(Error::from_code(*code, id, "", "cancelJob")),
        }
    }

    /// Jobs as `lua/transitions/cancel_jobs.lua` names them. Gives what became of each.
    async fn cancel_step(&self, now_ms: u64, reason: &str, remove: bool, jobs: &[[&str; 3]]) -> Result<Vec<i64>> {
        let mut packed = Packer::default();
        packed.array(3 * jobs.len());
        for text in jobs.iter().flatten() {
            packed.str(text);
        }
        let reply = self
            .run_once(&CANCEL_JOBS, now_ms, &args![reason, remove, &packed])
            .await?;
        Ok(Reply::new(CANCEL_JOBS.name, reply)?.numbers().collect())
    }
}
