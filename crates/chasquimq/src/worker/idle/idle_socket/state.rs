//! What is under way for an idle worker, and how it ends.

use std::{sync::Arc, time::Instant};

use redis::Value;

use crate::{
    error::Result,
    redis::wire::Watched,
    worker::{
        idle::{
            along::StepAlong,
            short_way::{End, SentStep, ShortWay, Told},
        },
        record::report::Report,
        standing::Standing,
        step_request::{Behind, StepRequest, GRACE},
        take::{answer::Answer, apart::has_stubs, offers::Offers},
    },
};

#[derive(Debug)]
pub(super) struct State {
    socket: Watched,
    pub(super) usable: bool,
    answers: Vec<Result<Value>>,
    under_way: Option<UnderWay>,
    along: Option<Along>,
    pub(super) end: Option<End>,
    // the worker's, unless its loop has it
    standing: Option<Standing>,
    short_way: Option<ShortWay>,
    offers: Arc<Offers>,
    // when an answer should be there
    pub(super) over: Instant,
    // jobs are left to the worker's loop
    pub(super) held_back: bool,
    // the event loop is starting several jobs, and what they came to is its own until then
    pub(super) told_by: Option<Instant>,
}

/// What was sent by the socket and is not answered.
#[derive(Debug)]
enum UnderWay {
    Wait {
        /// The step behind it; none while the worker holds jobs.
        behind: Option<Behind>,
        /// There is none, or it does nothing any more: one that went along was carried out.
        is_alone: bool,
    },
    Record(Box<SentStep>),
}

/// What was sent by the connection of an add and is not answered. Nothing that the socket brings ends before it.
#[derive(Debug)]
struct Along {
    sent: SentAlong,
    // it was there when the worker's loop looked
    is_old: bool,
}

#[derive(Debug)]
enum SentAlong {
    Take(StepRequest),
    Record(Box<SentStep>),
}

impl Along {
    fn new(sent: SentAlong) -> Self {
        Self { sent, is_old: false }
    }

    fn number(&self) -> i64 {
        match &self.sent {
            SentAlong::Take(request) => request.number,
            SentAlong::Record(step) => step.request.number,
        }
    }

    /// Not known whether it was carried out.
    fn lost(self) -> End {
        match self.sent {
            SentAlong::Take(request) => End::TakeLost(request),
            SentAlong::Record(step) => End::Recorded(step, None),
        }
    }
}

impl State {
    pub(super) fn new(socket: Watched, offers: Arc<Offers>) -> Self {
        Self {
            socket,
            usable: true,
            answers: Vec::new(),
            under_way: None,
            along: None,
            end: None,
            standing: None,
            short_way: None,
            offers,
            over: Instant::now(),
            held_back: false,
            told_by: None,
        }
    }

    // ---- The worker's side

    pub(super) fn lend(&mut self, standing: Standing, short_way: Option<ShortWay>) {
        (self.standing, self.short_way) = (Some(standing), short_way);
    }

    /// Sends a wait, and the step behind it, if there is one.
    pub(super) fn begin(&mut self, commands: Vec<u8>, behind: Option<Behind>, over: Instant) {
        let (is_alone, replies) = (behind.is_none(), 1 + usize::from(behind.is_some()));
        self.send(commands, replies, UnderWay::Wait { behind, is_alone }, over);
    }

    /// Sends a step behind the wait under way, if that has none and is not over.
    pub(super) fn add_step(&mut self, command: Vec<u8>, added: Behind) {
        if let Some(UnderWay::Wait { behind: None, .. }) = self.under_way {
            let wait = UnderWay::Wait {
                behind: Some(added),
                is_alone: false,
            };
            self.send(command, 1, wait, self.over);
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.under_way, Some(UnderWay::Wait { .. }))
    }

    pub(super) fn has_no_step(&self) -> bool {
        matches!(self.under_way, Some(UnderWay::Wait { behind: None, .. }))
    }

    pub(super) fn take_end(&mut self) -> Option<(End, Option<Standing>)> {
        self.settle();
        if self.told_by.is_some_and(|by| Instant::now() < by) {
            return None;
        }
        let end = self.end.take()?;
        Some((end, self.give_back()))
    }

    /// Ends what is under way; a wait whose step is over may stay.
    pub(super) fn break_off(&mut self, stays: bool) -> (Vec<End>, Option<Standing>) {
        self.read();
        let along = self.along.take();
        let mut ends: Vec<End> = self.end.take().into_iter().collect();
        self.settle();
        // a step that went along, and is lost, may not have been carried out
        let is_alone = matches!(self.under_way, Some(UnderWay::Wait { is_alone: true, .. }));
        if self.under_way.is_some() && !(stays && is_alone) {
            self.lose();
        }
        ends.extend(self.end.take());
        // behind the step that may have come before it
        ends.extend(along.map(Along::lost));
        (ends, self.give_back())
    }

    /// What went along a while ago is asked for by the worker's loop: an event loop that is busy does not read its answer.
    pub(super) fn lose_old_along(&mut self) {
        match &mut self.along {
            Some(along) if along.is_old => self.end = self.along.take().map(Along::lost),
            Some(along) => along.is_old = true,
            None => {}
        }
    }

    fn give_back(&mut self) -> Option<Standing> {
        self.short_way = None;
        self.standing.take()
    }

    // ---- The socket

    fn send(&mut self, commands: Vec<u8>, replies: usize, under_way: UnderWay, over: Instant) {
        (self.under_way, self.over) = (Some(under_way), over);
        // a socket that does not take some hundred bytes at once is not one to wait on
        if !self.usable || !matches!(self.socket.send(&commands.into(), replies), Ok(true)) {
            self.lose();
        }
    }

    pub(super) fn read(&mut self) {
        if self.usable {
            let alive = self.socket.receive(&mut self.answers).is_ok();
            self.settle();
            if !alive || (self.under_way.is_none() && !self.answers.is_empty()) {
                self.lose();
            }
        }
    }

    /// Notes how what the socket was asked ended, once all before it has ended.
    fn settle(&mut self) {
        if self.end.is_some() || self.along.is_some() {
            return;
        }
        let awaited = match self.under_way {
            Some(UnderWay::Wait { behind: Some(_), .. }) => 2,
            Some(_) => 1,
            None => return,
        };
        let is_answered = self.answers.len() >= awaited;
        if !is_answered && self.usable {
            return;
        }
        let reply = is_answered
            .then(|| self.answers.swap_remove(awaited - 1).ok())
            .flatten();
        let is_refused = reply.is_none() || self.answers.drain(..).any(|wait| wait.is_err());
        self.end = self.under_way.take().map(|sent| match (sent, reply) {
            (UnderWay::Wait { behind, .. }, reply) => match (behind, reply) {
                (None, marker) => End::Marker(marker.is_some_and(|marker| marker != Value::Nil)),
                (Some(behind), Some(reply)) => End::Stepped(behind, reply),
                // not known to the server yet, or refused: the loop steps itself
                (Some(behind), None) => End::Lost(behind),
            },
            (UnderWay::Record(step), reply) => End::Recorded(step, reply),
        });
        // what refuses may lead to a server that is no master any more
        if is_refused {
            self.lose();
        }
    }

    // the descriptor stays as long as somebody watches it
    pub(super) fn lose(&mut self) {
        if self.usable {
            self.usable = false;
            self.socket.cut();
        }
        self.settle();
    }

    // ---- The event loop's side

    /// Does what follows an end without the worker's loop, where nothing more is needed. Gives what is to be told.
    pub(super) fn go_on(&mut self) -> Option<Told> {
        let standing = self.standing.as_mut().filter(|_| !self.held_back)?;
        match self.end.take()? {
            End::Stepped(behind, reply) if Answer::has_jobs(&reply) && !has_stubs(&reply) => {
                let (answer, told) = take_in(reply, standing, &self.offers);
                self.end = Some(End::Taken(behind, Box::new(answer)));
                told
            }
            End::Recorded(step, Some(reply)) => self.recorded(step, reply),
            end => {
                self.end = Some(end);
                None
            }
        }
    }

    fn recorded(&mut self, step: Box<SentStep>, mut reply: Value) -> Option<Told> {
        let told = match (&self.short_way, &mut self.standing) {
            (Some(way), Some(standing)) => way.recorded(standing, &step, &mut reply),
            _ => None,
        };
        if told.is_none() {
            self.end = Some(End::Recorded(step, Some(reply)));
            return None;
        }
        if !self.wait_on() {
            self.end = Some(End::Told);
        }
        told
    }

    /// Waits for the next job, where that can be.
    fn wait_on(&mut self) -> bool {
        let (Some(way), Some(standing), true) = (&self.short_way, &mut self.standing, self.usable) else {
            return false;
        };
        if matches!(self.under_way, Some(UnderWay::Wait { .. })) {
            return way.may_stay(standing);
        }
        let Some((behind, commands)) = way.wait(standing) else {
            return false;
        };
        let over = Instant::now() + way.time + GRACE;
        self.begin(commands, Some(behind), over);
        true
    }

    pub(super) fn is_idle(&self) -> bool {
        let has_ended = self.end.is_some() || self.along.is_some() || !self.answers.is_empty();
        self.usable && !self.held_back && self.standing.is_some() && self.is_waiting() && !has_ended
    }

    pub(super) fn step_along(&mut self) -> Option<StepAlong> {
        let (Some(UnderWay::Wait { behind, is_alone }), true) = (&self.under_way, self.is_idle()) else {
            return None;
        };
        let (request, packed) = self.short_way.as_ref()?.step_along(self.standing.as_mut()?)?;
        let step = StepAlong {
            number: request.number,
            owner: self.short_way.as_ref()?.owner().to_owned(),
            request: packed,
            behind_wait: behind.filter(|_| !is_alone).map_or(0, |behind| behind.number),
        };
        self.along = Some(Along::new(SentAlong::Take(request)));
        Some(step)
    }

    fn take_along(&mut self, number: i64) -> Option<Along> {
        self.along.take_if(|along| along.number() == number)
    }

    pub(super) fn lose_along(&mut self, number: i64) {
        if let Some(along) = self.take_along(number) {
            self.end = Some(along.lost());
        }
    }

    pub(super) fn stepped(&mut self, number: i64, reply: Option<Value>) -> Option<Told> {
        let told = match (self.take_along(number)?.sent, reply) {
            (SentAlong::Take(request), Some(reply)) => self.taken_along(request, reply),
            // nothing was added, or the wait ended first
            (SentAlong::Take(_), None) => None,
            (SentAlong::Record(step), Some(reply)) if !self.held_back => self.recorded(step, reply),
            (SentAlong::Record(step), reply) => {
                self.end = Some(End::Recorded(step, reply));
                None
            }
        };
        self.settle();
        told
    }

    fn taken_along(&mut self, request: StepRequest, reply: Value) -> Option<Told> {
        if let Some(UnderWay::Wait { is_alone, .. }) = &mut self.under_way {
            *is_alone = true;
        }
        match &mut self.standing {
            Some(standing) if !self.held_back && Answer::has_jobs(&reply) && !has_stubs(&reply) => {
                let (answer, told) = take_in(reply, standing, &self.offers);
                self.end = Some(End::TakenAlong(request, Box::new(answer)));
                told
            }
            _ => {
                self.end = Some(End::SteppedAlong(request, reply));
                None
            }
        }
    }

    /// Records ends: by the socket, or by the command that is to go along, with the number of its step.
    pub(super) fn finish(&mut self, report: Report) -> std::result::Result<Option<(i64, Vec<u8>)>, Report> {
        let (Some(way), Some(standing), false) = (&self.short_way, &mut self.standing, self.held_back) else {
            return Err(report);
        };
        match &self.end {
            Some(End::Taken(behind, answer)) if self.usable => {
                let Ok(answer) = &**answer else { return Err(report) };
                let (step, commands) = way.record(standing, answer, behind.room, report)?;
                self.end = None;
                self.send(commands, 1, UnderWay::Record(Box::new(step)), Instant::now() + GRACE);
                Ok(None)
            }
            Some(End::TakenAlong(request, answer)) => {
                let Ok(answer) = &**answer else { return Err(report) };
                let (step, command) = way.record(standing, answer, request.room, report)?;
                self.end = None;
                let number = step.request.number;
                self.along = Some(Along::new(SentAlong::Record(Box::new(step))));
                Ok(Some((number, command)))
            }
            _ => Err(report),
        }
    }
}

/// Takes in what a reply brings. Gives what is to be told at once.
fn take_in(reply: Value, standing: &mut Standing, offers: &Offers) -> (Result<Answer>, Option<Told>) {
    let mut answer = Answer::read(reply, &mut standing.in_flight);
    let jobs = answer.as_mut().ok().and_then(|answer| {
        let mut jobs = answer.ready_jobs()?;
        let carried_out = standing.offset.carried_out(answer.server_us);
        offers.prolong(carried_out.into());
        offers.hand_over(&mut jobs, standing.in_flight.jobs());
        Some(jobs)
    });
    if answer.as_ref().is_ok_and(|answer| answer.was_idle) {
        standing.pace.delivered_to_idle();
    }
    (answer, jobs.map(Told::Jobs))
}
