//! The worker's loop: hears commands, and takes a step whenever there is something to record or room for more jobs.
//!
//! `mode` says whether it takes jobs, `steps` takes steps, `settle` takes in their answers, `unread` is for those that cannot be read, `idle` waits, `give_up`
//! gives back what nobody starts, `upkeep` keeps the lease and looks for jobs that nobody runs, `questions` tells that nothing is left.

mod give_up;
mod idle;
mod mode;
mod questions;
mod settle;
mod steps;
mod unread;
mod upkeep;

use std::{
    future::ready,
    sync::{atomic::AtomicBool, Arc},
    time::Instant,
};

use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    client_clock::{ClientClock, Reading},
    idle::idle_wait::{Pending, Waiter},
    message::{Command, Message, Question, Sink},
    mode::Mode,
    options::WorkerOptions,
    record::{report::Report, unrecorded::Unrecorded},
    rounds::Rounds,
    runner::Among,
    standing::Standing,
    take::{
        due::Ring,
        offers::{Late, Offers},
        pace::SHARE,
    },
};
use crate::{
    error::Error,
    job::msgpack::Packer,
    keys::Keys,
    latency::Measured,
    redis::{call::numbered_calls::Calls, connection::Connection},
};

pub(super) struct Loop {
    connection: Connection,
    waiter: Waiter,
    keys: Keys,
    options: WorkerOptions,
    sink: Sink,
    commands: mpsc::UnboundedReceiver<Command>,
    offers: Arc<Offers>,
    among: Among,
    // somebody else's while it is lent
    standing: Standing,
    // how long its jobs took, wherever it is
    measured: Option<Arc<Measured>>,
    // what of it is told next, a call each
    untold: Vec<[Packer; 2]>,
    // those that are not steps
    calls: Calls,
    unrecorded: Unrecorded,
    // the server takes no step, which a close must not wait for
    refused: Arc<AtomicBool>,
    clock: ClientClock,
    mode: Mode,
    look_again: bool,
    rounds: Rounds,
    // how often another server has taken the place of the last, as far as it was told what is held
    servers: u64,
    // the server has jobs for this worker's, perhaps, that it does not hold
    has_lost_track: bool,
    // the concurrency changed while that is so
    room_changed: bool,
    // when something is due, and whether jobs are held, as far as it was known to what is lent
    lent_due: Option<Instant>,
    lent_jobs: bool,
    // calls that wake others
    wakes: Vec<JoinHandle<()>>,
    // told when no fetch is under way any more
    pausing: Vec<tokio::sync::oneshot::Sender<()>>,
    questions: Vec<Question>,
    closing: Vec<tokio::sync::oneshot::Sender<()>>,
}

impl Loop {
    pub(super) fn new(
        connection: Connection,
        waiter: Waiter,
        keys: Keys,
        options: WorkerOptions,
        sink: Sink,
        commands: mpsc::UnboundedReceiver<Command>,
        offers: Arc<Offers>,
    ) -> Self {
        let among = options.runner.join(&keys.base);
        let servers = connection.servers();
        let mut standing = Standing::default();
        let measured = || Arc::new(Measured::new(options.measures_groups));
        standing.in_flight.measured = options.measures_latency.then(measured);
        let rounds = Rounds {
            note: options.measures_latency.then(Instant::now),
            ..Rounds::default()
        };
        Self {
            connection,
            waiter,
            keys,
            options,
            sink,
            commands,
            offers,
            among,
            measured: standing.in_flight.measured.clone(),
            untold: Vec::new(),
            calls: Calls::default(),
            standing,
            unrecorded: Unrecorded::default(),
            refused: Arc::default(),
            clock: ClientClock::default(),
            mode: Mode::Paused,
            look_again: false,
            rounds,
            servers,
            has_lost_track: false,
            room_changed: false,
            lent_due: None,
            lent_jobs: false,
            wakes: Vec::new(),
            pausing: Vec::new(),
            questions: Vec::new(),
            closing: Vec::new(),
        }
    }

    /// Whether the server refuses what must be done.
    pub(super) fn refused(&self) -> Arc<AtomicBool> {
        self.refused.clone()
    }

    pub(super) async fn run(mut self) {
        while self.run_once().await {}
        // whoever closed waits for this
        for done in self.closing.drain(..) {
            let _ = done.send(());
        }
    }

    /// Waits for something to do and does it. False at the end.
    async fn run_once(&mut self) -> bool {
        // what was heard on the way of the last step is not waited for
        let is_due = self.has_step_to_take() || self.rounds.scan.is_some();
        let timer = if is_due { None } else { self.next_timer() };
        let asked = self.waiter.standby();
        tokio::select! {
            biased;
            command = self.commands.recv() => match command {
                Some(command) => self.hear(command),
                // nobody can command this worker any more
                None => return false,
            },
            ends = self.waiter.woken(&mut self.standing) => {
                self.wake_by_all(ends).await;
            }
            () = asked.asked() => self.renew_lease().await,
            () = tokio::time::sleep_until(timer.unwrap_or_else(Instant::now).into()), if timer.is_some() => self.ring().await,
            () = ready(()), if is_due => self.ring().await,
        }
        while let Ok(command) = self.commands.try_recv() {
            self.hear(command);
        }
        if self.connection.is_closed() {
            return false;
        }
        if self.must_break_off() {
            self.break_off().await;
        }
        self.take_back_what_came();
        self.go_on_scanning().await;
        self.date_questions();
        loop {
            self.agree_with_server().await;
            if self.has_step_to_take() {
                self.step().await;
            }
            // a step may have met another server
            if self.connection.servers() == self.servers && !self.has_lost_track {
                break;
            }
        }
        self.hand_on();
        self.note_latency_in_time().await;
        if self.unrecorded.is_empty() {
            for done in self.pausing.drain(..) {
                let _ = done.send(());
            }
        }
        if !self.closing.is_empty() && self.unrecorded.is_empty() {
            // whoever closes gracefully has let its running jobs end: what is still held never started
            self.return_jobs(self.standing.in_flight.handles());
            while !self.unrecorded.is_empty() {
                self.step().await;
            }
            self.release().await;
            return false;
        }
        if self.rounds.check.is_none() && self.standing.in_flight.jobs() > 0 {
            self.rounds.check = self.options.lock_renew_time.map(|time| Instant::now() + time / 2);
        }
        self.wait_if_idle().await;
        true
    }

    fn has_step_to_take(&self) -> bool {
        let has_ends = !self.unrecorded.is_empty() && self.shares_until().is_none_or(|until| until <= Instant::now());
        has_ends || (self.mode.may_take() && self.look_again)
    }

    /// Until when what has ended may wait for more to share a step with: while no slot is idle, as jobs of the surplus run there, and nobody
    /// waits for the step.
    fn shares_until(&self) -> Option<Instant> {
        let ended: usize = self
            .unrecorded
            .reports
            .iter()
            .map(|report| report.completed.len())
            .sum();
        let is_plain = |report: &Report| report.others.is_empty() && !report.completed.is_empty();
        let is_waited_for = !self.mode.is_running()
            || self.look_again
            || self.room_changed
            || self.clock.is_foreign()
            || self.options.limiter.is_some()
            || !self.closing.is_empty()
            || !self.pausing.is_empty();
        let is_busy = self.standing.in_flight.jobs() as usize >= ended + self.options.concurrency as usize;
        if is_waited_for
            || !is_busy
            || !self.unrecorded.reports.iter().all(is_plain)
            || !self.standing.pace.shares(ended)
        {
            return None;
        }
        Some(self.unrecorded.since? + SHARE)
    }

    fn hear(&mut self, command: Command) {
        match command {
            Command::FakeClock(is_fake) => self.clock.fakes(is_fake),
            Command::Run(reading) => {
                self.clock.says(reading);
                self.hear_life();
                self.run_on();
            }
            Command::Pause { done } => {
                self.stop_taking();
                self.rounds.next_scan = None;
                self.pausing.extend(done);
                // now: what is handed over once it fetches again is to be started
                self.take_back(true);
            }
            Command::Concurrency(concurrency) => {
                self.room_changed = self.waiter.pending.takes_jobs();
                self.look_again |= concurrency > self.options.concurrency;
                self.options.concurrency = concurrency;
                self.offers.set_concurrency(concurrency);
            }
            Command::Limiter(limiter) => {
                self.room_changed = self.waiter.pending.takes_jobs();
                self.options.limiter = limiter;
                self.end_rest();
            }
            Command::Finish(report, reading) => self.hear_ends(report, reading),
            Command::Tick(reading) => {
                self.clock.says(reading);
                // the clock may have jumped to where something is due
                self.unrecorded.reports.push(Report {
                    now_ms: self.clock.now_ms(),
                    ..Report::default()
                });
            }
            Command::Heard => self.hear_life(),
            Command::Emptied(question) => self.ask_what_is_left(question),
            Command::TakeBack => self.take_back(true),
            Command::Attend(attends) => {
                self.rounds.attends = attends;
                if attends && !self.holds_jobs() {
                    self.rounds.renewal = self.options.lock_renew_time.map(|time| Instant::now() + time / 2);
                }
            }
            Command::Scan => {
                if self.options.stalled_interval.is_some() && self.rounds.next_scan.is_none() {
                    self.rounds.next_scan = Some(Instant::now());
                }
            }
            Command::Close { done } => {
                self.stop_taking();
                self.closing.push(done);
            }
        }
    }

    fn hear_ends(&mut self, report: Report, reading: Reading) {
        self.clock.says(reading);
        self.hear_life();
        let is_limited = report.is_limited();
        self.unrecorded.add(report, reading.at);
        // nothing more starts until the limit is over
        if is_limited {
            self.take_back(true);
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        let late = self.offers.next_look(self.terms());
        // what a wait is lent is not known here
        let due = match self.waiter.pending {
            Pending::Lent => self.lent_due,
            _ => self.standing.due.next(),
        };
        let due = due.filter(|_| self.mode.is_running());
        let rested = self.mode.rests_until();
        let shared = (!self.unrecorded.is_empty()).then(|| self.shares_until()).flatten();
        [
            late,
            due,
            self.next_renewal(),
            rested,
            shared,
            self.rounds.check,
            self.rounds.next_scan,
            self.rounds.note,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Without jobs there is no lease to renew: the step that takes some does it, wherever it is taken.
    fn next_renewal(&self) -> Option<Instant> {
        self.rounds.renewal.filter(|_| self.rounds.attends || self.holds_jobs())
    }

    /// As far as it is known here.
    fn holds_jobs(&self) -> bool {
        match self.waiter.pending {
            Pending::Lent => self.lent_jobs,
            _ => self.standing.in_flight.jobs() > 0,
        }
    }

    /// A timer rang: find out which.
    async fn ring(&mut self) {
        let now = Instant::now();
        if self.waiter.pending == Pending::Lent && self.lent_due.is_some_and(|due| due <= now) {
            self.break_off().await;
        }
        match self.standing.due.rings(now) {
            Some(Ring::Look) => self.look_again = true,
            Some(Ring::HandOn) => self.wake_another(),
            None => {}
        }
        if self.mode.rests_until().is_some_and(|end| end <= now) {
            self.end_rest();
        }
        match self.offers.late(self.terms(), now) {
            Some(Late::Surplus) => self.take_back(false),
            Some(Late::IfAnyIdle) => self.give_up_if_any_idle().await,
            None => {}
        }
        if self.next_renewal().is_some_and(|at| at <= now) {
            self.renew_lease().await;
        }
        if self.rounds.check.is_some_and(|at| at <= now) {
            self.check_locks().await;
        }
        if self.rounds.next_scan.is_some_and(|at| at <= now) {
            self.begin_scan();
        }
    }

    fn report(&self, error: Error) {
        if !error.is_connection() {
            (self.sink)(Message::error(error));
        }
    }
}
