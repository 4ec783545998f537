//! Takes in the answers to steps.

use std::{
    collections::HashMap,
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use redis::Value;

use super::Loop;
use crate::{
    clock::Moment,
    error::{Error, Result},
    job::large::{self, Large},
    redis::call::reply::Reply,
    worker::{
        message::Message,
        record::packed_outcomes::{PackedOutcomes, Rejected},
        standing::MOST_WANTED,
        step_request::StepRequest,
        take::{
            answer::Answer,
            apart,
            batch::{Batch, Extra},
            due::Found,
            room::Room,
        },
    },
};

/// Bytes of names and data from which on a step was most likely cut off: it takes no more once it has 1 MiB of frames and records, which have a little more
/// (`lua/step/fetched.lua`).
const CUT_TEXT: usize = 960 * 1024;

impl Loop {
    /// Takes in the answer to a step.
    pub(super) async fn absorb(&mut self, reply: Value, request: &StepRequest, outcomes: PackedOutcomes) -> Result<()> {
        match self.read_or_ask(reply, request, &outcomes).await {
            Ok(answer) => self.absorb_read(answer, request, outcomes).await,
            Err(error) => self.lose_track(error, outcomes),
        }
    }

    /// The same once the next step is under way: the server remembers that one alone.
    pub(super) async fn absorb_meanwhile(
        &mut self,
        reply: Value,
        request: &StepRequest,
        outcomes: PackedOutcomes,
    ) -> Result<()> {
        match self.read(reply).await {
            Ok(answer) => self.absorb_read(answer, request, outcomes).await,
            Err(error) => {
                self.report_unread(&error);
                self.lose_track(error, outcomes)
            }
        }
    }

    async fn absorb_read(&mut self, answer: Answer, request: &StepRequest, outcomes: PackedOutcomes) -> Result<()> {
        self.standing.offset.measure(answer.server_us, request.sent_us);
        self.settle(
            answer,
            Instant::now(),
            request.sent..=Moment::now(),
            request.room,
            outcomes,
        )
        .await
    }

    /// Takes in the answer to a step that somebody else took. It is perhaps old by now.
    pub(super) async fn absorb_late(&mut self, answer: Answer, room: Room) -> Result<()> {
        let carried_out = self.standing.offset.carried_out(answer.server_us);
        let moment = Moment::from(carried_out);
        self.settle(answer, carried_out, moment..=moment, room, PackedOutcomes::none(0))
            .await?;
        self.look_for_questions();
        Ok(())
    }

    /// Does what an answer says. `moments`: when its step was carried out, at the earliest and at the latest, which is `carried_out`.
    async fn settle(
        &mut self,
        answer: Answer,
        carried_out: Instant,
        moments: RangeInclusive<Moment>,
        room: Room,
        mut outcomes: PackedOutcomes,
    ) -> Result<()> {
        let lapsed = self.offers.lease(moments);
        self.return_jobs(lapsed);
        let (taken, now_ms, limited_ms) = (answer.taken, answer.now_ms, answer.limited_ms);
        if now_ms > 0 {
            self.standing.offset.stepped(now_ms);
        }
        let rejected = outcomes.rejected(answer.rejected, &mut self.standing.in_flight);
        // what is held on to has its place still: the step took less (`lua/step/round_trip`)
        let kept = rejected.iter().filter(|refusal| refusal.is_held()).count();
        let mut room = room.without(kept);
        answer.unreadable.into_iter().for_each(|error| self.report(error));
        let mut jobs = answer.jobs;
        if let Some(batch) = &mut jobs {
            if let Err(error) = self.read_traces(batch).await {
                self.report(error);
            }
            self.read_data(batch).await?;
        }
        if limited_ms > 0 {
            // a window ends with a whole millisecond of the server's clock
            let begun_us = answer.server_us.rem_euclid(1000) as u64;
            let rest = Duration::from_micros(limited_ms.saturating_mul(1000) - begun_us);
            self.rest(carried_out + rest.min(self.options.maximum_rate_limit_delay));
            if !outcomes.limited.is_empty() {
                room = room.to_look();
            }
        }
        let is_cut = !answer.gated && jobs.as_ref().is_some_and(|batch| batch.text.len() >= CUT_TEXT);
        let found = Found {
            taken,
            due_ms: answer.due_ms,
            now_ms,
            carried_out,
            is_left: answer.is_left,
            waits: answer.waits,
        };
        self.after_fetch(room, is_cut, found);
        if answer.was_idle && taken > 0 {
            self.standing.pace.delivered_to_idle();
        }
        // the step itself renewed the lease
        self.rounds.renewal = self.options.lock_renew_time.map(|time| carried_out + time / 2);
        let found_all = taken > 0 && limited_ms == 0;
        let drained = self.standing.is_drained(room.want, found_all);
        let was_told = taken > 0 && jobs.is_none();
        if let Some(batch) = jobs.take_if(|_| !self.mode.is_running()) {
            self.return_jobs((batch.base..batch.base + batch.jobs.len() as u32).collect());
        }
        self.tell(jobs, drained, rejected, outcomes);
        if was_told {
            self.hear_who_was_told();
        }
        if answer.gated {
            self.take_back(false);
        }
        Ok(())
    }

    /// `is_cut`: the step had as many bytes as one takes.
    fn after_fetch(&mut self, room: Room, is_cut: bool, found: Found) {
        if room.want < 0 {
            // nor is it told of work
            self.standing.hears_of_work();
            return;
        }
        // as surplus as well: the server works while these jobs run
        let now = self.room(0);
        self.look_again |= is_cut && now.want.max(now.surplus) > 0;
        self.look_again |= found.taken >= MOST_WANTED && now.want > 0;
        self.standing.has_fetched(room, found);
    }

    /// Tells what a step brought, and what is recorded: of a report, when all of it is.
    pub(super) fn tell(
        &mut self,
        jobs: Option<Batch>,
        drained: bool,
        rejected: Vec<Rejected>,
        mut outcomes: PackedOutcomes,
    ) {
        self.unrecorded.of_part.0.extend(rejected);
        self.unrecorded.of_part.1.append(&mut outcomes.failures);
        let (rejected, failures) = match outcomes.is_part {
            true => Default::default(),
            false => std::mem::take(&mut self.unrecorded.of_part),
        };
        self.standing.flushed = outcomes.flushed.unwrap_or(0).max(self.standing.flushed);
        let jobs_here = jobs.is_some();
        let mut message = Message {
            jobs,
            flushed: outcomes.flushed.filter(|number| *number > 0),
            rejected,
            failures,
            finished_on: outcomes.now_ms,
            drained,
            asks_for_life: self.standing.reaches && jobs_here,
            ..Message::default()
        };
        if let Some(jobs) = &mut message.jobs {
            self.offers.hand_over(jobs, self.standing.in_flight.jobs());
        }
        if message.jobs.is_some() || message.flushed.is_some() || message.drained {
            (self.sink)(message);
        }
    }

    /// Stack traces of many jobs that failed before do not go through scripts (`lua/step/fetched.lua`).
    async fn read_traces(&self, batch: &mut Batch) -> Result<()> {
        let mut failed: Vec<&mut Extra> = batch.extras.iter_mut().filter(|extra| extra.lacks_traces()).collect();
        if failed.is_empty() {
            return Ok(());
        }
        let mut command = redis::cmd("HMGET");
        command.arg(self.keys.key("traces"));
        for extra in &failed {
            command.arg(&extra.id);
        }
        let mut traces = Reply::new("stack traces", self.connection.send(&command).await?)?;
        for extra in &mut failed {
            extra.fields.stacktrace = traces.opt_text()?;
        }
        Ok(())
    }

    /// An answer with the frames that lie apart. No job starts without them: they are asked for until they come.
    pub(super) async fn whole(&self, mut reply: Value) -> Result<Value> {
        loop {
            match apart::read_frames(&self.connection, &self.keys, &mut reply).await {
                Ok(()) => return Ok(reply),
                Err(Error::Closed) => return Err(Error::Closed),
                Err(error) => self.pause_refused(error).await,
            }
        }
    }

    /// Data that lie apart (`lua/jobs/large.lua`). No job starts without them: they are asked for until they come.
    async fn read_data(&self, batch: &mut Batch) -> Result<()> {
        let mut found = HashMap::new();
        for (at, extra) in batch.extras.iter_mut().enumerate() {
            if extra.fields.large_data.is_none() {
                continue;
            }
            let data = loop {
                match Large::read(&self.connection, &self.keys, &extra.id, &extra.fields).await {
                    Ok(large) => break large.data,
                    Err(Error::Closed) => return Err(Error::Closed),
                    Err(error) => self.pause_refused(error).await,
                }
            };
            match data {
                Some(data) => drop(found.insert(at as u32, data)),
                None => drop(extra.fields.deferred_failure.get_or_insert_with(large::missing)),
            }
        }
        if !found.is_empty() {
            batch.put_data(&found);
        }
        Ok(())
    }
}
