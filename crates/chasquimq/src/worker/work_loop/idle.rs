//! How the loop waits when there is nothing to do, and what it does with the end of a wait.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use redis::Value;

use super::Loop;
use crate::{
    clock::{system_now_ms, system_now_us},
    error::Result,
    redis::call::{
        library::{args, PARK},
        reply::{int, Reply},
    },
    worker::{
        idle::{
            idle_wait::Pending,
            short_way::{SentStep, ShortWay},
            wait_task::wake_next,
            woken::{Ends, Woken},
        },
        message::Message,
        record::packed_outcomes::PackedOutcomes,
        step_request::{Elsewhere, StepRequest, Waits},
        take::room::Room,
    },
};

/// Longest wait while the caller's clock is one of its own: nothing tells when it jumps. Tests have such clocks.
const FOREIGN_LOOK: Duration = Duration::from_millis(20);
/// The server ends a wait that blocks up to a tenth of a second late: a rest is listened through only as far as that cannot outlast it.
const LATE: Duration = Duration::from_millis(150);

/// In the place of when the next job is due: the worker has just looked.
const JUST_LOOKED: i64 = -2;

/// What the server says to a worker that is to wait.
#[derive(Clone, Copy, PartialEq)]
enum Parked {
    /// It does.
    Waits,
    /// There was a marker: it is to look.
    Marked,
    /// So there was, and who left it tells nobody.
    Passed,
    /// There is work all the same.
    Missed,
}

impl Loop {
    pub(super) async fn wait_if_idle(&mut self) {
        if !self.mode.may_take() || self.look_again {
            return;
        }
        if self.standing.has_room {
            self.standing.pace.rests(self.standing.due.next());
        }
        let is_known = match self.waiter.pending {
            Pending::Nothing => {
                self.begin_to_wait().await;
                true
            }
            // steps were taken while it waits, of which the last may have found the marker: then the server does not know that it waits
            Pending::Work if self.waiter.hears() && !self.waiter.blocks() && self.standing.has_room => {
                self.is_known_to_wait(Pending::Work, Duration::ZERO).await
            }
            _ => true,
        };
        if is_known && self.waiter.may_lend() {
            self.lend().await;
        }
    }

    /// Begins to wait for work, where there is room for it, or for the end of a rest.
    async fn begin_to_wait(&mut self) {
        let (pending, time) = match self.mode.rests_until() {
            Some(end) => (
                Pending::Lift,
                end.saturating_duration_since(Instant::now()).saturating_sub(LATE),
            ),
            None if self.standing.has_room => (Pending::Work, self.time_to_wait()),
            None => return,
        };
        if pending == Pending::Lift && time.is_zero() {
            return;
        }
        if self.waiter.blocks() {
            let marker = if pending == Pending::Lift { "open" } else { "wake" };
            return self.waiter.block(pending, self.keys.key(marker), time);
        }
        if self.waiter.hears() && !self.is_known_to_wait(pending, time).await {
            return;
        }
        let lease = self.options.lock_renew_time.map(|time| time / 2);
        self.waiter.wait(pending, time, lease);
    }

    fn time_to_wait(&self) -> Duration {
        match self.clock.is_foreign() {
            // a caller's clock of its own cannot be told to the server beforehand
            true => self.options.drain_delay.min(FOREIGN_LOOK),
            false => self.options.drain_delay,
        }
    }

    /// Has the server know that this worker waits, where no step has. False where it is to look instead.
    async fn is_known_to_wait(&mut self, pending: Pending, time: Duration) -> bool {
        let rests = pending == Pending::Lift;
        if !rests && self.standing.waits() {
            return true;
        }
        match self.park(if rests { time } else { Duration::ZERO }, JUST_LOOKED).await {
            Ok(Parked::Waits) => {
                if !rests {
                    self.standing.waits = Waits::Yes;
                }
                return true;
            }
            Ok(_) if rests => self.end_rest(),
            Ok(_) => self.look_again = true,
            // it is tried again once the server can be asked
            Err(error) => {
                self.report(error);
                return true;
            }
        }
        false
    }

    async fn park(&self, rest: Duration, due_ms: i64) -> Result<Parked> {
        let args = args![self.options.id.as_str(), rest.as_millis() as u64, due_ms];
        let parked = PARK.run(&self.connection, &self.keys.base, &args).await?;
        Ok(match int(PARK.name, &parked)? {
            0 => Parked::Waits,
            1 => Parked::Marked,
            2 => Parked::Missed,
            _ => Parked::Passed,
        })
    }

    /// Lends what is known to whoever hears of work first. Where something is due before the wait ends, this loop looks then.
    async fn lend(&mut self) {
        // this loop takes it back in time
        let has_offers = self.offers.is_waiting();
        let looks_itself = self.clock.is_foreign() || !self.questions.is_empty();
        if has_offers || !self.standing.has_room || self.mode.is_limited() || looks_itself {
            return;
        }
        if self.standing.offset.is_doubtful(Instant::now()) {
            self.measure_clock().await;
        }
        let looks_at = self.standing.due.next();
        let short_way = ShortWay::new(&self.connection, &self.keys.base, &self.options, looks_at);
        if short_way.may_stay(&self.standing) {
            self.lent_due = looks_at;
            self.lent_jobs = self.standing.in_flight.jobs() > 0;
            self.waiter.lend(&mut self.standing, short_way);
        }
    }

    /// Measures how far the clocks are apart: a step that somebody else takes is carried out at a time that this loop cannot send.
    async fn measure_clock(&mut self) {
        let sent_us = system_now_us();
        match self.server_us().await {
            Ok(server_us) => self.standing.offset.measure(server_us, sent_us),
            Err(error) => self.report(error),
        }
    }

    async fn server_us(&self) -> Result<i64> {
        let answer = self.connection.send(&redis::cmd("TIME")).await?;
        let mut answer = Reply::new("the server's clock", answer)?;
        let (seconds, us) = (answer.int()?, answer.int()?);
        Ok(seconds.saturating_mul(1_000_000).saturating_add(us))
    }

    /// What is lent may take jobs whenever it pleases: it must not, when this worker has come to want something else. A wait must not stand in the way of
    /// something else.
    pub(super) fn must_break_off(&self) -> bool {
        let is_wanted =
            !self.mode.may_take() || !self.unrecorded.is_empty() || self.room_changed || self.clock.is_foreign();
        match self.waiter.pending {
            // nobody else looks by itself
            Pending::Lent => is_wanted || self.look_again,
            // the rest that it was for is over
            Pending::Lift => self.mode.rests_until().is_none(),
            Pending::Work | Pending::Nothing => false,
        }
    }

    pub(super) async fn break_off(&mut self) {
        let ends = self.waiter.break_off(&mut self.standing).await;
        self.wake_by_all(ends).await;
    }

    pub(super) async fn wake_by_all(&mut self, ends: Ends) {
        self.room_changed = false;
        for (woken, elsewhere) in ends {
            self.wake(woken, elsewhere.unwrap_or_default()).await;
        }
    }

    /// A wait ended, or a step that somebody else took.
    async fn wake(&mut self, woken: Woken, elsewhere: Elsewhere) {
        let absorbed = match woken {
            Woken::Marker(came) => {
                self.hear_of_work(came).await;
                Ok(())
            }
            Woken::LookDue => {
                self.look_for_news().await;
                Ok(())
            }
            Woken::Lift(came) => {
                if came {
                    self.standing.hears_of_work();
                    if self.waiter.blocks() {
                        // it concerns every worker that rests
                        self.waking("open").await;
                    }
                    self.end_rest();
                }
                Ok(())
            }
            Woken::Hearing => {
                self.begin_to_hear();
                Ok(())
            }
            Woken::Stepped(reply) => match self.read(reply).await {
                Ok(answer) => self.absorb_late(answer, elsewhere.room).await,
                Err(error) => self.ask_elsewhere(error, elsewhere).await,
            },
            Woken::Read(answer) => self.absorb_late(*answer, elsewhere.room).await,
            Woken::Unread(error) => self.ask_elsewhere(error, elsewhere).await,
            Woken::Lost => {
                if !self.mode.is_running() {
                    // it may have been woken
                    self.wake_another();
                }
                self.send_again(elsewhere).await
            }
            Woken::Recorded(step, reply) => self.absorb_recorded(*step, reply).await,
            Woken::Told => Ok(()),
        };
        if let Err(error) = absorbed {
            self.report(error);
        }
    }

    /// The server tells this worker of work by another connection than before, or not any more: what was told meanwhile is looked for.
    fn begin_to_hear(&mut self) {
        let hears = self.waiter.hears();
        self.standing.waits = if hears { Waits::No } else { Waits::Deaf };
        // one that has no room looks with its next step
        self.look_again |= self.standing.has_room && self.mode.is_running() && !self.mode.is_limited();
        if hears && self.options.watches_news {
            (self.sink)(Message {
                standby: Some(self.waiter.standby()),
                ..Message::default()
            });
        }
    }

    /// Learns what became of a step, by sending it again: what it took is taken in; if it never was carried out, it is now.
    pub(super) async fn send_again(&mut self, elsewhere: Elsewhere) -> Result<()> {
        // a caller's clock of its own has to be asked for first
        let room = if self.clock.is_foreign() {
            Room::NONE
        } else {
            self.room(0)
        };
        self.look_again = self.mode.is_running() && self.clock.is_foreign();
        let request = StepRequest::again(elsewhere, system_now_ms() as i64, room);
        let reply = self.send_step(&request, &PackedOutcomes::none(0)).await?;
        self.absorb(reply, &request, PackedOutcomes::none(0)).await?;
        self.look_for_questions();
        Ok(())
    }

    /// Takes in the answer to a step that recorded ends by the short way; a lost one is asked for by sending the step again.
    async fn absorb_recorded(&mut self, SentStep { request, outcomes }: SentStep, reply: Option<Value>) -> Result<()> {
        let reply = match reply {
            Some(reply) => reply,
            None => self.send_step(&request, &outcomes).await?,
        };
        self.absorb(reply, &request, outcomes).await?;
        self.look_for_questions();
        Ok(())
    }

    /// There is work, or a wait for it is over.
    async fn hear_of_work(&mut self, came: bool) {
        if came {
            self.waiter.is_told();
            self.standing.hears_of_work();
            if std::mem::take(&mut self.waiter.is_unread) {
                self.ask_for_life();
            }
            if !self.mode.may_take() || self.mode.is_limited() {
                // somebody else should be woken
                self.waking("wake").await;
            }
        } else if self.waits_to_be_told() {
            return self.look_for_missed().await;
        }
        self.standing.was_woken |= came;
        // a wait in vain is a reason to look, unless no slot is free, or the next look for what is due comes soon
        let now = Instant::now();
        let looks_soon = self.standing.due.next().is_some_and(|due| due < now + LATE);
        let is_reason = came || (self.standing.has_room && !looks_soon);
        self.look_again |= is_reason && self.mode.is_running() && !self.mode.is_limited();
    }

    /// Whether the server tells this worker of all that may concern it: no clock of the caller's own, and nobody who asks what is left.
    fn waits_to_be_told(&self) -> bool {
        self.waiter.waits_to_be_told(&self.standing) && !self.clock.is_foreign() && self.questions.is_empty()
    }

    /// The wait has lasted long enough: has anything happened?
    async fn look_for_news(&mut self) {
        if self.waits_to_be_told() {
            self.waiter.ask(&self.connection, &self.keys.base);
        } else {
            let ends = self.waiter.end_in_vain(&mut self.standing);
            Box::pin(self.wake_by_all(ends)).await;
        }
    }

    /// This worker waits, and was told of nothing for a while: somebody else may have missed it, or have left a marker who could not tell.
    async fn look_for_missed(&mut self) {
        match self.park(Duration::ZERO, self.standing.due.known_ms()).await {
            Ok(Parked::Waits) => return,
            Ok(Parked::Marked) => self.waiter.has_missed(),
            Ok(Parked::Passed) => self.waiter.is_passed_over(),
            Ok(Parked::Missed) => {}
            Err(error) => return self.report(error),
        }
        self.standing.hears_of_work();
        self.look_again |= self.mode.is_running() && !self.mode.is_limited();
    }

    /// A worker that does not fetch may be the only one that knows when a job is due, also by a step that was under way, or have been told of work.
    pub(super) fn hand_on(&mut self) {
        // who closes is released
        if self.mode.may_take() || !self.closing.is_empty() {
            return;
        }
        let was_told = self.standing.waits();
        self.standing.hears_of_work();
        if self.standing.due.forget() || was_told {
            self.wake_another();
        }
    }

    /// Another worker is to look, as soon as the server can tell it.
    pub(super) fn wake_another(&mut self) {
        self.wakes.push(tokio::spawn(self.waking("wake")));
    }

    /// What this worker has had others woken by is carried out: the server forgets by it that this one waits.
    pub(super) async fn others_woken(&mut self) {
        for wake in self.wakes.drain(..) {
            // one that failed has said so
            let _ = wake.await;
        }
    }

    fn waking(&self, marker: &'static str) -> impl Future<Output = ()> + 'static {
        let (connection, base, sink) = (self.connection.clone(), self.keys.base.clone(), self.sink.clone());
        let id = self.options.id.clone();
        async move {
            let told = wake_next(&connection, &base, marker, &id).await;
            if let Some(error) = told.err().filter(|error| !error.is_connection()) {
                sink(Message::error(error));
            }
        }
    }
}
