//! The short way of an idle worker's jobs: when all that a step took has completed before the worker's loop hears of it, the event loop
//! that ran it records that itself, and the worker waits on. Two thread changes less lie between the end of a handler and `completed`.
//!
//! It takes the plain case only. Whatever else there is to do is left to the loop, which goes on from what was sent and answered so far
//! (`End`), so each of these steps is numbered like the loop's own.

use std::time::{Duration, Instant};

use redis::Value;

use crate::{
    clock::{is_foreign, system_now_ms},
    redis::{
        call::library::{Arg, STEP},
        connection::Connection,
    },
    worker::{
        options::{Defaults, WorkerOptions},
        record::{
            pack,
            packed_outcomes::PackedOutcomes,
            report::{Completed, Report},
        },
        standing::Standing,
        step_request::{step_args, StepRequest},
        take::{answer::Answer, batch::Batch, due::Found, pace::ENDS_A_STEP, room::Room},
    },
};

/// Bytes of results that take this way: what is longer is cut into steps first (`portion`).
const MOST_BYTES: usize = 16 * 1024;

/// What is told by this way, of what [`crate::worker::Message`] tells.
#[derive(Debug)]
pub enum Told {
    /// Jobs that are active now, to be run.
    Jobs(Batch),
    /// What ended is recorded.
    Recorded {
        /// Every report up to this one.
        flushed: Option<u64>,
        /// `finishedOn` of what ended in it, epoch ms.
        finished_on: u64,
        /// Nothing was left to fetch.
        drained: bool,
    },
}

/// How what a worker's loop had left to others ended.
#[derive(Debug)]
pub(crate) enum End {
    /// There is work (true), or the time was over.
    Marker(bool),
    /// The worker hears by something else than before.
    Hearing,
    /// A step was carried out: its reply.
    Stepped(StepRequest, Value),
    /// It was carried out, and what it took was taken in.
    Taken(StepRequest, Box<crate::error::Result<Answer>>),
    /// Not known whether it was carried out.
    TakeLost(StepRequest),
    /// A step that records ends: its reply, unless that is lost.
    Recorded(Box<SentStep>, Option<Value>),
    /// Such a step was told of; what follows is for the loop.
    Told,
}

/// What it takes to take steps, and to record ends.
#[derive(Debug)]
pub(crate) struct ShortWay {
    // for what its server knows: nothing is sent by it
    connection: Connection,
    base: String,
    options: WorkerOptions,
    // how long a wait lasts
    time: Duration,
    // when the worker's loop looks for what is due, if that is before the wait ends
    looks_at: Option<Instant>,
}

/// A step that was sent.
#[derive(Debug)]
pub(crate) struct SentStep {
    pub(crate) request: StepRequest,
    pub(crate) outcomes: PackedOutcomes,
}

impl ShortWay {
    /// `looks_at`: when the worker's loop looks for what is due.
    pub(crate) fn new(connection: &Connection, base: &str, options: &WorkerOptions, looks_at: Option<Instant>) -> Self {
        Self {
            connection: connection.clone(),
            base: base.to_owned(),
            options: options.clone(),
            time: options.drain_delay,
            looks_at,
        }
    }

    /// Packs the step that records these ends of all that is held; `answer` brought it. Gives them back where that is for the loop.
    pub(crate) fn record(
        &self,
        standing: &mut Standing,
        answer: &Answer,
        room: Room,
        report: Report,
    ) -> Result<(SentStep, Vec<u8>), Report> {
        // ends that the loop has still to hear of are none of these
        let is_all =
            report.completed.len() == standing.in_flight.jobs() as usize && report.number == standing.flushed + 1;
        if !is_plain(answer) || !is_all || !goes_together(&report) || is_foreign(report.now_ms) {
            return Err(report);
        }
        let late = standing.offset.measure_late(answer.server_us);
        if !late.is_zero() {
            return Err(report);
        }
        standing.offset.stepped(answer.now_ms);
        let now = Instant::now();
        standing.has_fetched(
            room,
            Found {
                taken: answer.taken,
                due_ms: answer.due_ms,
                now_ms: answer.now_ms,
                carried_out: now,
                is_left: answer.is_left,
                waits: answer.waits,
            },
        );
        standing.is_drained(room.want, true);
        let report = Report {
            now_ms: standing.offset.date(report.now_ms),
            ..report
        };
        let defaults = Defaults::of(&self.options);
        let outcomes = pack::pack(vec![report], system_now_ms(), &mut standing.in_flight, &defaults);
        standing.pace.ended(outcomes.jobs, now, self.options.concurrency);
        let room = standing.room(0, &self.options);
        let request = standing.ask(outcomes.now_ms, room, false);
        let packed = self.packed(standing, &request, &outcomes);
        Ok((SentStep { request, outcomes }, packed))
    }

    /// Takes in the reply to the step that recorded ends, if that is all it did. Gives what is to be told.
    pub(crate) fn recorded(&self, standing: &mut Standing, step: &SentStep, reply: &mut Value) -> Option<Told> {
        let Some((0, _)) = Answer::plainly_brings(reply) else {
            return None;
        };
        let answer = Answer::read(std::mem::replace(reply, Value::Nil), &mut standing.in_flight).ok()?;
        standing.offset.measure(answer.server_us, step.request.sent_us);
        standing.offset.stepped(answer.now_ms);
        let room = step.request.room;
        standing.has_fetched(
            room,
            Found {
                taken: 0,
                due_ms: answer.due_ms,
                now_ms: answer.now_ms,
                carried_out: Instant::now(),
                is_left: answer.is_left,
                waits: answer.waits,
            },
        );
        standing.flushed = step.outcomes.flushed.unwrap_or(standing.flushed);
        Some(Told::Recorded {
            flushed: step.outcomes.flushed,
            finished_on: step.outcomes.now_ms,
            drained: standing.is_drained(room.want, false),
        })
    }

    /// Whether a wait that stands may go on: the worker's loop knows of what is due before it ends.
    pub(crate) fn may_stay(&self, standing: &Standing) -> bool {
        let now = Instant::now();
        let looks_at = self.looks_at.unwrap_or(now + self.time);
        let is_news = standing.due.next().is_some_and(|due| due < looks_at);
        !is_news && standing.has_room && !standing.offset.is_doubtful(now)
    }

    /// A step that takes jobs at once, and what it asks for, packed.
    pub(crate) fn step_along(&self, standing: &mut Standing) -> Option<(StepRequest, Vec<u8>)> {
        // a limit that is met would end the wait
        if self.options.limiter.is_some() || !self.may_stay(standing) {
            return None;
        }
        let request = standing.ask_at_once(standing.room(0, &self.options));
        let packed = request.pack(&self.options, standing.offset.us(), &PackedOutcomes::none(0));
        Some((request, packed))
    }

    /// Such a step as a command.
    pub(crate) fn command(&self, packed: &[u8]) -> Vec<u8> {
        STEP.packed(&self.connection, &self.base, &[Arg::from(packed)])
    }

    fn packed(&self, standing: &Standing, request: &StepRequest, outcomes: &PackedOutcomes) -> Vec<u8> {
        let packed = request.pack(&self.options, standing.offset.us(), outcomes);
        let args: Vec<Arg<'_>> = step_args(&packed, outcomes);
        STEP.packed(&self.connection, &self.base, &args)
    }
}

/// Whether an answer brought jobs that need nothing else, and nothing that is to be told.
fn is_plain(answer: &Answer) -> bool {
    answer.rejected.is_empty() && answer.unreadable.is_empty() && !answer.gated && answer.limited_ms == 0
}

/// Whether ends are recorded as they are, in one step.
fn goes_together(report: &Report) -> bool {
    let is_plain = report.others.is_empty() && report.changed.is_empty();
    let is_small = report.completed.len() <= ENDS_A_STEP && report.text.len() <= MOST_BYTES;
    is_plain && is_small && !report.completed.iter().any(Completed::is_large)
}
