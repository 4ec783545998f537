//! How the loop waits when there is nothing to do, and what it does with the end of a wait.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use redis::{Cmd, Value};

use super::Loop;
use crate::{
    clock::{system_now_ms, system_now_us},
    error::Result,
    redis::call::{
        library::{Arg, STEP},
        reply::Reply,
    },
    worker::{
        idle::{
            idle_socket::IdleSocket,
            idle_wait::Pending,
            short_way::{SentStep, ShortWay},
            wait_task::wake_next,
            woken::{Ends, Woken},
        },
        message::Message,
        record::packed_outcomes::PackedOutcomes,
        step_request::{Behind, StepRequest},
        take::room::Room,
    },
};

/// Longest wait while the caller's clock is one of its own: nothing tells when it jumps. Tests have such clocks.
const FOREIGN_LOOK: Duration = Duration::from_millis(20);
/// The server ends a wait up to a tenth of a second late: a rest is listened through only as far as that cannot outlast it.
const LATE: Duration = Duration::from_millis(150);

impl Loop {
    pub(super) async fn wait_if_idle(&mut self) {
        if !self.mode.may_take() || self.look_again {
            return;
        }
        if self.standing.has_room {
            self.standing.pace.rests(self.standing.due.next());
        }
        if self.waiter.pending == Pending::Lent {
            return;
        }
        self.waiter.has_idled |= self.standing.in_flight.jobs() == 0;
        if self.waiter.may_lend() {
            return self.lend().await;
        }
        if self.waiter.pending != Pending::Nothing {
            return;
        }
        if let Some(end) = self.mode.rests_until() {
            let time = end.saturating_duration_since(Instant::now()).saturating_sub(LATE);
            if !time.is_zero() {
                self.waiter.wait_for_lift(self.keys.key("open"), time);
            }
            return;
        }
        if !self.standing.has_room {
            return;
        }
        let steps = self.standing.in_flight.jobs() == 0 && !self.clock.is_foreign();
        if steps && self.standing.offset.is_doubtful(Instant::now()) {
            self.measure_clock().await;
        }
        let time = self.time_to_wait();
        if let Some(socket) = self.next_socket.take() {
            self.waiter.use_socket(Some(socket));
        }
        // a caller's clock of its own cannot be told to the server beforehand
        if self.clock.is_foreign() {
            self.waiter.wait(time.min(FOREIGN_LOOK));
            return;
        }
        self.ask_for_socket();
        let lease = self.options.lock_renew_time.map(|time| time / 2);
        let short_way = ShortWay::new(&self.connection, &self.keys.base, &self.options);
        if !steps || !short_way.may_wait(&self.standing) {
            self.waiter.wait_beside_jobs(time);
            if self.waiter.may_lend() {
                self.lend().await;
            }
            return;
        }
        let (behind, step) = self.step_behind_wait();
        self.waiter
            .wait_and_step(behind, step, lease, &mut self.standing, short_way);
    }

    fn time_to_wait(&self) -> Duration {
        // where something is due before the wait ends, this worker looks by its own clock: the server ends a wait late
        let until_due = self
            .standing
            .due
            .next()
            .map(|due| due.saturating_duration_since(Instant::now()));
        match until_due {
            // what it takes then leaves it no slot, and a marker would come in vain
            Some(until_due) if self.options.concurrency == 1 => until_due.min(self.options.drain_delay),
            _ => self.options.drain_delay,
        }
    }

    fn step_behind_wait(&mut self) -> (Behind, Cmd) {
        let (behind, request) = self.standing.ask_behind_wait(self.room(0));
        let packed = self.pack(&request, &PackedOutcomes::none(0));
        let step = STEP.by_name(&self.connection, &self.keys.base, &[Arg::from(packed.as_slice())]);
        (behind, step)
    }

    /// Has the wait under way bring jobs: by an add that takes a step along, and, once nothing is held, by its own step. Where something is due before
    /// it ends, this loop looks then.
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
        let mut short_way = ShortWay::new(&self.connection, &self.keys.base, &self.options);
        let is_alone = short_way.may_wait(&self.standing);
        self.lent_due = self.standing.due.next().filter(|_| !is_alone);
        short_way.looks_at = self.lent_due;
        if short_way.may_stay(&self.standing) {
            let steps = is_alone && self.waiter.pending == Pending::Marker && self.standing.in_flight.jobs() == 0;
            let step = steps.then(|| self.step_behind_wait());
            self.waiter.lend(step, &mut self.standing, short_way);
        }
    }

    /// Measures how far the clocks are apart: a step behind a wait is carried out at a time that nobody can send.
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

    fn ask_for_socket(&mut self) {
        if !self.options.watches_sockets || !self.waiter.wants_socket() {
            return;
        }
        let (waiting, sink, offers) = (self.waiting.clone(), self.sink.clone(), self.offers.clone());
        tokio::spawn(async move {
            // without a socket, waits go by the connection, which reports what is wrong
            if let Some(socket) = IdleSocket::open(&waiting, offers).await {
                sink(Message {
                    socket: Some(socket),
                    ..Message::default()
                });
            }
        });
    }

    /// A step behind a wait takes jobs whenever it pleases: it must not, when this worker has come to want something else. A wait
    /// without one must not stand in the way of one that is shorter, or for something else.
    pub(super) fn must_break_off(&self) -> bool {
        let is_wanted =
            !self.mode.may_take() || !self.unrecorded.is_empty() || self.room_changed || self.clock.is_foreign();
        match self.waiter.pending {
            Pending::Step(_) => is_wanted,
            // no step looks by itself
            Pending::Lent => is_wanted || self.look_again,
            Pending::Alone => self.mode.is_limited() || self.clock.is_foreign(),
            // the rest that it was for is over
            Pending::Lift => self.mode.rests_until().is_none(),
            Pending::Marker | Pending::Nothing => false,
        }
    }

    pub(super) async fn break_off(&mut self) {
        let ends = self.waiter.break_off(&mut self.standing).await;
        self.wake_by_all(ends).await;
    }

    pub(super) async fn wake_by_all(&mut self, ends: Ends) {
        self.room_changed = false;
        for (woken, behind) in ends {
            self.wake(woken, behind.unwrap_or_default()).await;
        }
    }

    /// A wait ended, or what went along with an add.
    async fn wake(&mut self, woken: Woken, behind: Behind) {
        let absorbed = match woken {
            Woken::Marker(came) => {
                if came && std::mem::take(&mut self.waiter.is_unread) {
                    self.ask_for_life();
                }
                self.hear_marker(came).await;
                Ok(())
            }
            Woken::Lift(came) => {
                if came {
                    // it concerns every worker that rests
                    self.waking("open").await;
                    self.end_rest();
                }
                Ok(())
            }
            Woken::Stepped(reply) => match self.read(reply).await {
                Ok(answer) => self.absorb_late(answer, behind.room).await,
                Err(error) => self.ask_elsewhere(error, behind).await,
            },
            Woken::Read(answer) => self.absorb_late(*answer, behind.room).await,
            Woken::Unread(error) => self.ask_elsewhere(error, behind).await,
            Woken::Lost => {
                if !self.mode.is_running() {
                    // it may have been woken
                    self.wake_another();
                }
                self.send_again(behind).await
            }
            Woken::LostAlong(number) => {
                let along = Behind {
                    number,
                    is_along: true,
                    ..Behind::default()
                };
                self.send_again(along).await
            }
            Woken::Recorded(step, reply) => self.absorb_recorded(*step, reply).await,
            Woken::Told => Ok(()),
        };
        if let Err(error) = absorbed {
            self.report(error);
        }
    }

    /// Learns what became of a step, by sending it again: what it took is taken in; if it never was carried out, it is now.
    pub(super) async fn send_again(&mut self, behind: Behind) -> Result<()> {
        // a caller's clock of its own has to be asked for first
        let room = if self.clock.is_foreign() {
            Room::NONE
        } else {
            self.room(0)
        };
        self.look_again = self.mode.is_running() && self.clock.is_foreign();
        let request = StepRequest::again(behind, system_now_ms() as i64, room);
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

    /// A wait without a step ended, by its marker or its time.
    async fn hear_marker(&mut self, came: bool) {
        if came && (!self.mode.may_take() || self.mode.is_limited()) {
            // somebody else should be woken
            self.waking("wake").await;
        }
        self.standing.was_woken |= came;
        // a wait in vain is a reason to look, unless no slot is free, or the next look for what is due comes soon
        let now = Instant::now();
        let looks_soon = self.standing.due.next().is_some_and(|due| due < now + LATE);
        let is_reason = came || (self.standing.has_room && !looks_soon);
        self.look_again |= is_reason && self.mode.is_running() && !self.mode.is_limited();
    }

    /// A worker that does not fetch may be the only one that knows when a job is due, also by a step that was under way.
    pub(super) fn hand_on_due(&mut self) {
        if !self.mode.may_take() && self.standing.due.forget() {
            self.wake_another();
        }
    }

    /// Another worker is to look, as soon as the server can tell it.
    pub(super) fn wake_another(&self) {
        tokio::spawn(self.waking("wake"));
    }

    fn waking(&self, marker: &'static str) -> impl Future<Output = ()> + 'static {
        let (connection, base, sink) = (self.connection.clone(), self.keys.base.clone(), self.sink.clone());
        async move {
            let told = wake_next(&connection, &base, marker).await;
            if let Some(error) = told.err().filter(|error| !error.is_connection()) {
                sink(Message::error(error));
            }
        }
    }
}
