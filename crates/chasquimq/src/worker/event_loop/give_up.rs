//! Gives back jobs that nobody starts here, when another worker could start them.

use std::time::{Duration, Instant};

use redis::Value;

use super::Loop;
use crate::{
    error::Result,
    worker::{idle_wait::Pending, wait_task::wake_next},
};

/// How much later than other answers the end of this worker's own wait may come.
const OWN_END: Duration = Duration::from_millis(2);

impl Loop {
    /// Jobs are late. Whoever runs them may be blocked, or longer handlers have come.
    pub(super) async fn give_up_if_any_idle(&mut self) {
        if self.waiter.pending.takes_jobs() {
            // what is lent is needed to return jobs
            self.break_off().await;
        }
        if !self.is_another_idle().await {
            return;
        }
        let taken = self.offers.give_up(self.terms(), Instant::now());
        if let Some(drawn) = taken.silent_after {
            self.silent = true;
            self.standing.prefetch.was_silent(drawn);
            // what is given back must not wake this worker
            let ends = self.waiter.leave_socket(&mut self.standing);
            self.wake_by_all(ends).await;
        }
        self.return_jobs(taken.handles);
    }

    /// A marker that nobody takes stays: then every worker is busy. It stays for the next look, too.
    async fn is_another_idle(&mut self) -> bool {
        loop {
            match self.is_marker_taken().await {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    self.report(error);
                    return false;
                }
            }
            if self.waiter.pending == Pending::Nothing || self.awaits_lift {
                return true;
            }
            let Some(ends) = self.waiter.own_end(OWN_END, &mut self.standing).await else {
                return true;
            };
            self.wake_by_all(ends).await;
        }
    }

    async fn is_marker_taken(&self) -> Result<bool> {
        wake_next(&self.connection, &self.keys.base, "wake").await?;
        let left = redis::cmd("EXISTS").arg(self.keys.key("wake")).take();
        Ok(self.connection.send(&left).await? == Value::Int(0))
    }
}
