//! Gives back jobs that are not to start here, or that nobody starts when another worker could.

use std::time::{Duration, Instant};

use redis::Value;

use super::Loop;
use crate::{
    error::Result,
    worker::{
        idle::{idle_wait::Pending, wait_task::wake_next},
        message::Message,
        record::report::Report,
        take::offers::Terms,
    },
};

/// How much later than other answers the end of this worker's own wait may come.
const OWN_END: Duration = Duration::from_millis(2);

impl Loop {
    /// When jobs that nobody draws are late.
    pub(super) fn terms(&self) -> Terms {
        Terms {
            window: self.standing.pace.window(),
            gap: self.standing.pace.gap(self.options.concurrency),
            with_slots: self.among.is_alone(),
        }
    }

    /// Whoever runs jobs did not read what came: it may be blocked. Until it is heard, jobs are for others.
    pub(super) fn ask_for_life(&mut self) {
        if self.fall_silent() {
            (self.sink)(Message {
                asks_for_life: true,
                ..Message::default()
            });
        }
    }

    /// Whoever runs jobs was told of some before this loop, and is heard by that, unless it did not get to tell.
    pub(super) fn hear_who_was_told(&mut self) {
        match self.waiter.is_unread {
            true if self.standing.reaches => self.ask_for_life(),
            true => {}
            false => self.hear_life(),
        }
    }

    /// Takes back surplus, or all that nobody has drawn: it goes to the head of the waiting list, for whoever can start it.
    pub(super) fn take_back(&mut self, all: bool) {
        let taken = self.offers.take_back(all);
        self.return_jobs(taken.handles);
    }

    /// Returns jobs that nobody is to run any more.
    pub(super) fn return_jobs(&mut self, handles: Vec<u32>) {
        if handles.is_empty() {
            return;
        }
        self.standing.pace.forget();
        let returning = Report::returning(handles, self.clock.now_ms());
        self.unrecorded.add_returning(returning);
    }

    /// What came for nobody, or since a pause began.
    pub(super) fn take_back_what_came(&mut self) {
        let evicted = self.offers.evicted();
        self.return_jobs(evicted);
        if !self.mode.is_running() {
            self.take_back(true);
        }
    }

    /// Jobs are late. Whoever runs them may be blocked, or longer handlers have come.
    pub(super) async fn give_up_if_any_idle(&mut self) {
        if self.waiter.pending.takes_jobs() {
            // what is lent is needed to return jobs
            self.break_off().await;
        }
        if !self.is_another_idle().await {
            return;
        }
        let held = self.standing.in_flight.jobs();
        let taken = self.offers.give_up(self.terms(), Instant::now(), held);
        if taken.is_silent {
            self.fall_silent();
            self.standing.pace.is_silent();
        }
        self.return_jobs(taken.handles);
    }

    /// A marker that nobody takes stays: then every worker is busy. It stays for the next look, too. This worker is not told of what it gives back.
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
            if matches!(self.waiter.pending, Pending::Nothing | Pending::Lift) {
                return true;
            }
            let Some(ends) = self.waiter.own_end(OWN_END, &mut self.standing).await else {
                return true;
            };
            self.wake_by_all(ends).await;
        }
    }

    async fn is_marker_taken(&mut self) -> Result<bool> {
        let exists = redis::cmd("EXISTS").arg(self.keys.key("wake")).take();
        // one that was left before serves as well
        if self.connection.send(&exists).await? != Value::Int(0) {
            return Ok(false);
        }
        self.standing.hears_of_work();
        if wake_next(&self.connection, &self.keys.base, "wake", &self.options.id).await? {
            return Ok(true);
        }
        Ok(self.connection.send(&exists).await? == Value::Int(0))
    }
}
