//! What is lent, what is under way by it, and how that ends.

use std::{sync::Arc, time::Instant};

use redis::Value;

use crate::{
    error::Result,
    redis::wire::Wire,
    worker::{
        idle::{
            along::StepAlong,
            short_way::{End, SentStep, ShortWay, Told},
        },
        record::report::Report,
        standing::Standing,
        step_request::StepRequest,
        take::{answer::Answer, apart::has_stubs, offers::Offers},
    },
};

/// By what a worker hears.
#[derive(Debug, Clone)]
pub(crate) enum Hearing {
    /// Not yet, or not any more.
    Nothing,
    /// This connection.
    By(Wire),
    /// The server tells nothing by channels, or not to this user.
    Refused,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) hearing: Hearing,
    // that has changed, and the worker's loop does not know it
    is_news: bool,
    // an event loop reads what it hears by
    pub(super) is_watched: bool,
    // the server has told of work
    pub(super) is_told: bool,
    // and an event loop was too busy to read that
    pub(super) is_unread: bool,
    along: Option<Along>,
    end: Option<End>,
    // the worker's, unless its loop has it
    standing: Option<Standing>,
    short_way: Option<ShortWay>,
    offers: Arc<Offers>,
    // jobs are left to the worker's loop
    pub(super) held_back: bool,
    // the event loop is starting several jobs, and what they came to is its own until then
    pub(super) told_by: Option<Instant>,
}

/// What was sent and is not answered.
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
    pub(super) fn new(offers: Arc<Offers>) -> Self {
        Self {
            hearing: Hearing::Nothing,
            is_news: false,
            is_watched: false,
            is_told: false,
            is_unread: false,
            along: None,
            end: None,
            standing: None,
            short_way: None,
            offers,
            held_back: false,
            told_by: None,
        }
    }

    pub(super) fn hears(&mut self, hearing: Hearing) {
        (self.hearing, self.is_news, self.is_watched) = (hearing, true, false);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.is_watched && matches!(self.hearing, Hearing::By(_))
    }

    // ---- The worker's side

    pub(super) fn lend(&mut self, standing: Standing, short_way: ShortWay) {
        (self.standing, self.short_way) = (Some(standing), Some(short_way));
    }

    pub(super) fn waits(&self) -> bool {
        self.standing.as_ref().is_some_and(Standing::waits)
    }

    pub(super) fn due_ms(&self) -> i64 {
        self.standing.as_ref().map_or(-1, |standing| standing.due.known_ms())
    }

    /// Whether the worker's loop has something to do. What was told while a step was under way is for it.
    pub(super) fn is_for_loop(&self) -> bool {
        self.end.is_some() || (self.along.is_none() && self.news().is_some())
    }

    pub(super) fn take_end(&mut self) -> Option<(End, Option<Standing>)> {
        if self.told_by.is_some_and(|by| Instant::now() < by) {
            return None;
        }
        // nothing that came meanwhile ends before what is under way
        let end = self
            .end
            .take()
            .or_else(|| self.news().filter(|_| self.along.is_none()))?;
        self.took(&end);
        Some((end, self.give_back()))
    }

    /// What the worker's loop is to hear beside ends.
    fn news(&self) -> Option<End> {
        match (self.is_news, self.is_told) {
            (true, _) => Some(End::Hearing),
            (_, true) => Some(End::Marker(true)),
            _ => None,
        }
    }

    fn took(&mut self, end: &End) {
        match end {
            End::Hearing => self.is_news = false,
            End::Marker(_) => self.is_told = false,
            _ => {}
        }
    }

    pub(super) fn take_back(&mut self) -> (Vec<End>, Option<Standing>) {
        let mut ends: Vec<End> = self.end.take().into_iter().collect();
        // behind what came before it
        ends.extend(self.along.take().map(Along::lost));
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

    // ---- The event loop's side

    fn is_idle(&self) -> bool {
        let has_ended = self.end.is_some() || self.along.is_some() || self.is_news;
        !self.held_back && self.standing.is_some() && !has_ended
    }

    fn take_step(&mut self) -> Option<Vec<u8>> {
        if !self.is_idle() {
            return None;
        }
        let (request, packed) = self.short_way.as_ref()?.step_along(self.standing.as_mut()?)?;
        self.sends(SentAlong::Take(request));
        Some(packed)
    }

    pub(super) fn step_along(&mut self) -> Option<StepAlong> {
        let request = self.take_step()?;
        let number = self.along.as_ref()?.number();
        Some(StepAlong { number, request })
    }

    pub(super) fn step_on_news(&mut self) -> Option<(i64, Vec<u8>)> {
        if !self.is_told {
            return None;
        }
        let standing = self.standing.as_mut()?;
        // it waits no more, as far as the server knows
        standing.hears_of_work();
        let packed = self.take_step()?;
        self.is_told = false;
        Some((self.along.as_ref()?.number(), self.short_way.as_ref()?.command(&packed)))
    }

    fn take_along(&mut self, number: i64) -> Option<Along> {
        self.along.take_if(|along| along.number() == number)
    }

    /// What went along is asked for by the worker's loop: an event loop that stands still does not read its answer. Whether there was something.
    pub(super) fn lose_any_along(&mut self) -> bool {
        let Some(along) = self.along.take() else { return false };
        (self.end, self.is_unread) = (Some(along.lost()), true);
        true
    }

    pub(super) fn waits_for_answer(&self) -> bool {
        self.along.is_some()
    }

    fn sends(&mut self, sent: SentAlong) {
        self.along = Some(Along::new(sent));
        if let Hearing::By(wire) = &self.hearing {
            wire.expect();
        }
    }

    pub(super) fn lose_along(&mut self, number: i64) {
        if let Some(along) = self.take_along(number) {
            self.end = Some(along.lost());
        }
    }

    pub(super) fn stepped(&mut self, number: i64, reply: Option<Value>) -> Option<Told> {
        match (self.take_along(number)?.sent, reply) {
            (SentAlong::Take(request), Some(reply)) => self.taken(request, reply),
            // nothing was added
            (SentAlong::Take(_), None) => None,
            (SentAlong::Record(step), Some(reply)) if !self.held_back => self.recorded(step, reply),
            (SentAlong::Record(step), reply) => {
                self.end = Some(End::Recorded(step, reply));
                None
            }
        }
    }

    fn taken(&mut self, request: StepRequest, reply: Value) -> Option<Told> {
        match &mut self.standing {
            Some(standing) if !self.held_back && Answer::has_jobs(&reply) && !has_stubs(&reply) => {
                let (answer, told) = take_in(reply, standing, &self.offers);
                self.end = Some(End::Taken(request, Box::new(answer)));
                told
            }
            _ => {
                self.end = Some(End::Stepped(request, reply));
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
        if !self.waits_on() {
            self.end = Some(End::Told);
        }
        told
    }

    /// Whether the worker waits for the next job, and nothing else is to be done.
    fn waits_on(&self) -> bool {
        match (&self.short_way, &self.standing) {
            (Some(way), Some(standing)) => standing.waits() && way.may_stay(standing),
            _ => false,
        }
    }

    /// Records ends: by the command that is to go along, with the number of its step.
    pub(super) fn finish(&mut self, report: Report) -> std::result::Result<(i64, Vec<u8>), Report> {
        let (Some(way), Some(standing), false) = (&self.short_way, &mut self.standing, self.held_back) else {
            return Err(report);
        };
        let Some(End::Taken(request, answer)) = &self.end else {
            return Err(report);
        };
        let Ok(answer) = &**answer else { return Err(report) };
        let (step, command) = way.record(standing, answer, request.room, report)?;
        self.end = None;
        let number = step.request.number;
        self.sends(SentAlong::Record(Box::new(step)));
        Ok((number, command))
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
