//! Takes steps: what has ended is packed, and as much asked for as there is room for.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::Ordering,
    task::Poll,
    time::{Duration, Instant},
};

use redis::Value;

use super::Loop;
use crate::{
    clock::system_now_ms,
    error::{Error, Result},
    redis::call::library::STEP,
    worker::{
        idle::idle_wait::Pending,
        message::Message,
        options::Defaults,
        record::{
            pack,
            packed_outcomes::PackedOutcomes,
            portion::{self, Held},
        },
        step_request::{step_args, StepRequest},
        take::{answer::Answer, room::Room},
    },
};

/// Pause before what the server refused is tried again.
pub(super) const REFUSED_PAUSE: Duration = Duration::from_secs(1);

impl Loop {
    /// Records what ended, and takes what may start.
    pub(super) async fn step(&mut self) {
        self.look_again = false;
        if self.clock.is_foreign() && self.unrecorded.is_empty() {
            (self.sink)(Message {
                clock: true,
                ..Message::default()
            });
            return;
        }
        self.others_woken().await;
        let outcomes = self.gather();
        if let Err(error) = self.take_steps(outcomes).await {
            self.report(error);
        }
    }

    /// Packs what ended.
    fn gather(&mut self) -> PackedOutcomes {
        for report in &mut self.unrecorded.reports {
            report.now_ms = self.standing.offset.date(report.now_ms);
        }
        let in_flight = &self.standing.in_flight;
        let held = Held {
            bytes: &|handle| in_flight.bytes_known(handle),
            has_records: in_flight.has_records(),
        };
        let (reports, is_part) = portion::cut(&mut self.unrecorded.reports, &held);
        if reports.is_empty() {
            return PackedOutcomes::none(system_now_ms());
        }
        let defaults = Defaults::of(&self.options);
        PackedOutcomes {
            is_part,
            ..pack::pack(reports, system_now_ms(), &mut self.standing.in_flight, &defaults)
        }
    }

    /// Takes a step, and further ones while more has ended by the time an answer comes: then the next step is sent first, so that the
    /// server works while the answer is read.
    async fn take_steps(&mut self, mut outcomes: PackedOutcomes) -> Result<()> {
        let mut request = self.ask(&outcomes, 0);
        let sent = Instant::now();
        let mut reply = self.send_step(&request, &outcomes).await?;
        self.standing.pace.stepped(sent.elapsed());
        while let Some(brought) = self.may_go_on(&reply) {
            let next = self.gather();
            let mut next_request = self.ask(&next, brought);
            next_request.asks_due |= i64::from(brought) < request.room.want;
            let packed = self.pack(&next_request, &next);
            let command = STEP.by_name(&self.connection, &self.keys.base, &step_args(&packed, &next));
            let connection = self.connection.clone();
            let mut answer = std::pin::pin!(async move { connection.send_write(&command).await });
            let early = poll_once(answer.as_mut()).await;
            // lets the connection's task write it
            tokio::task::yield_now().await;
            if let Err(error) = self.absorb_meanwhile(reply, &request, outcomes).await {
                self.report(error);
            }
            let answered = match early {
                Some(answered) => answered,
                None => answer.await,
            };
            (request, outcomes) = (next_request, next);
            reply = match answered {
                Ok(reply) => reply,
                Err(Error::Closed) => return Err(Error::Closed),
                Err(_) => self.send_step(&request, &outcomes).await?,
            };
        }
        self.absorb(reply, &request, outcomes).await?;
        self.answer_questions(request.number).await
    }

    /// The jobs that an answer brings, if the next step may be sent before it is read: when there is something to record, and nothing else to do.
    fn may_go_on(&mut self, reply: &Value) -> Option<u32> {
        while let Ok(command) = self.commands.try_recv() {
            self.hear(command);
        }
        let has_other_work = !self.mode.may_take()
            || self.connection.servers() != self.servers
            || self.unrecorded.is_empty()
            || self.shares_until().is_some()
            || self.clock.is_foreign()
            || self.options.limiter.is_some()
            || self.waiter.pending != Pending::Nothing
            || !self.closing.is_empty()
            || !self.pausing.is_empty()
            || self.rounds.scan.is_some()
            || self.next_timer().is_some_and(|timer| timer <= Instant::now());
        if has_other_work {
            return None;
        }
        let (brought, now_ms) = Answer::plainly_brings(reply)?;
        self.standing.offset.stepped(now_ms);
        Some(brought)
    }

    /// What the next step asks for, `coming` jobs being about to be held.
    fn ask(&mut self, outcomes: &PackedOutcomes, coming: u32) -> StepRequest {
        self.look_again = false;
        let slots = self.options.concurrency;
        self.standing.pace.ended(outcomes.jobs, self.unrecorded.ended_at, slots);
        // a job that follows on a slot is active after the one before it is told to have ended
        let room = if outcomes.is_part {
            Room::NONE
        } else {
            self.room(coming)
        };
        self.standing.ask(outcomes.now_ms, room, self.clock.is_foreign())
    }

    /// Jobs to take, `coming` jobs being about to be held.
    pub(super) fn room(&self, coming: u32) -> Room {
        match self.mode.may_take() {
            true if self.mode.is_limited() => Room::FULL,
            true => self.standing.room(coming, &self.options),
            false => Room::NONE,
        }
    }

    /// Sends a step until the server takes it.
    pub(super) async fn send_step(&self, request: &StepRequest, outcomes: &PackedOutcomes) -> Result<Value> {
        let packed = self.pack(request, outcomes);
        let args = step_args(&packed, outcomes);
        loop {
            match STEP.run(&self.connection, &self.keys.base, &args).await {
                Ok(reply) => {
                    self.refused.store(false, Ordering::Relaxed);
                    return Ok(reply);
                }
                Err(Error::Closed) => return Err(Error::Closed),
                // what ended must be recorded: it is tried until the server takes it
                Err(error) => self.pause_refused(error).await,
            }
        }
    }

    /// The server refused what must be done: it is tried again after a pause.
    pub(super) async fn pause_refused(&self, error: Error) {
        if !error.is_connection() {
            self.refused.store(true, Ordering::Relaxed);
        }
        match error {
            Error::Malformed { .. } => self.report_unread(&error),
            error => self.report(error),
        }
        tokio::time::sleep(REFUSED_PAUSE).await;
    }

    pub(super) fn pack(&self, request: &StepRequest, outcomes: &PackedOutcomes) -> Vec<u8> {
        request.pack(&self.options, self.clock.offset_us(&self.standing.offset), outcomes)
    }
}

/// Starts a future. Gives its output if it is there at once.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}
