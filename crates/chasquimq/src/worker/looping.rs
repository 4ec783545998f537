//! The worker's loop: hears commands, and takes a step whenever there is something to record or room for more jobs.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::{
    fetch::{Batch, Extra, Holdings},
    finish::{Defaults, Flush, Outcomes},
    pace::Pace,
    wait::wait_for_marker,
    Command, Message, Sink, WorkerOptions,
};
use crate::{
    clock::{is_foreign, system_now_ms},
    error::{Error, Result},
    keys::Keys,
    server::{
        conn::Connection,
        reply::Reply,
        script::{Arg, RELEASE, RESCUE, STEP},
    },
};

/// Bytes of jobs a step takes beyond those that start now.
const MAX_BYTES: i64 = 4 * 1024 * 1024;
/// Pause before a step that the server refused is tried again.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Loop {
    connection: Connection,
    waiting: Option<(Connection, mpsc::Sender<bool>, mpsc::Receiver<Duration>)>,
    keys: Keys,
    options: WorkerOptions,
    sink: Sink,
    commands: mpsc::UnboundedReceiver<Command>,
    ask_to_wait: mpsc::Sender<Duration>,
    woken: mpsc::Receiver<bool>,
    holdings: Holdings,
    pace: Pace,
    flushes: Vec<Flush>,
    step_number: i64,
    fetching: bool,
    // the last fetch found less than it wanted: the marker tells when there is more
    hungry: bool,
    waiter_is_busy: bool,
    look_again: bool,
    next_due: Option<Instant>,
    drained: bool,
    asked_back: bool,
    // the caller's clock, when it is not the system's
    foreign_clock: bool,
    next_renewal: Option<Instant>,
    next_scan: Option<Instant>,
    closing: Vec<tokio::sync::oneshot::Sender<()>>,
}

impl Loop {
    pub(super) fn new(
        connection: Connection,
        waiting: Connection,
        keys: Keys,
        options: WorkerOptions,
        sink: Sink,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        let (ask_to_wait, asked) = mpsc::channel(1);
        let (wake, woken) = mpsc::channel(1);
        Self {
            connection,
            waiting: Some((waiting, wake, asked)),
            keys,
            options,
            sink,
            commands,
            ask_to_wait,
            woken,
            holdings: Holdings::default(),
            pace: Pace::new(),
            flushes: Vec::new(),
            step_number: 0,
            fetching: false,
            hungry: false,
            waiter_is_busy: false,
            look_again: false,
            next_due: None,
            drained: false,
            asked_back: false,
            foreign_clock: false,
            next_renewal: None,
            next_scan: None,
            closing: Vec::new(),
        }
    }

    pub(super) async fn run(mut self) {
        if let Some((connection, woken, asked)) = self.waiting.take() {
            tokio::spawn(wait_for_marker(connection, self.keys.clone(), asked, woken));
        }
        while self.turn().await {}
        // whoever closed waits for this
        for done in self.closing.drain(..) {
            let _ = done.send(());
        }
    }

    /// Waits for something to do and does it. False at the end.
    async fn turn(&mut self) -> bool {
        let timer = self.next_timer();
        tokio::select! {
            biased;
            command = self.commands.recv() => match command {
                Some(command) => self.hear(command),
                // nobody can command this worker any more
                None => return false,
            },
            Some(came) = self.woken.recv(), if self.waiter_is_busy => {
                self.waiter_is_busy = false;
                self.look_again = self.fetching;
                if came && !self.fetching {
                    self.pass_marker_on().await;
                }
            }
            () = tokio::time::sleep_until(timer.unwrap_or_else(Instant::now).into()), if timer.is_some() => self.ring().await,
        }
        while let Ok(command) = self.commands.try_recv() {
            self.hear(command);
        }
        if self.connection.is_closed() {
            return false;
        }
        if !self.flushes.is_empty() || (self.fetching && self.look_again) {
            self.step().await;
        }
        if !self.closing.is_empty() && self.flushes.is_empty() {
            self.release().await;
            return false;
        }
        self.wait_if_hungry();
        true
    }

    fn hear(&mut self, command: Command) {
        match command {
            Command::Run { now_ms } => {
                self.foreign_clock = is_foreign(now_ms);
                if !self.fetching {
                    self.fetching = true;
                    self.look_again = true;
                    self.next_scan = self.options.stalled_interval.map(|_| Instant::now());
                }
            }
            Command::Pause => {
                self.fetching = false;
                self.hungry = false;
                self.next_scan = None;
            }
            Command::Concurrency(concurrency) => {
                self.look_again |= concurrency > self.options.concurrency;
                self.options.concurrency = concurrency;
            }
            Command::Finish(flush) => {
                self.foreign_clock = is_foreign(flush.now_ms);
                self.flushes.push(flush);
            }
            Command::Tick { now_ms } => {
                // the clock may have jumped to where something is due
                self.flushes.push(Flush {
                    now_ms,
                    ..Flush::default()
                });
            }
            Command::Close { done } => {
                self.fetching = false;
                self.hungry = false;
                self.closing.push(done);
            }
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        let surplus = (self.has_surplus() && !self.asked_back).then(|| self.pace.patience_ends());
        let due = self.next_due.filter(|_| self.fetching && self.hungry);
        let renewal = self.next_renewal.filter(|_| self.holdings.jobs() > 0);
        [surplus, due, renewal, self.next_scan].into_iter().flatten().min()
    }

    fn has_surplus(&self) -> bool {
        self.holdings.jobs() > self.options.concurrency
    }

    /// A timer rang: find out which.
    async fn ring(&mut self) {
        let now = Instant::now();
        if self.next_due.is_some_and(|due| due <= now) {
            self.next_due = None;
            self.look_again = true;
        }
        if self.has_surplus() && !self.asked_back && self.pace.patience_ends() <= now {
            self.ask_back();
        }
        if self.next_renewal.is_some_and(|at| at <= now) {
            self.renew_lease().await;
        }
        if self.next_scan.is_some_and(|at| at <= now) {
            self.rescue().await;
        }
    }

    fn ask_back(&mut self) {
        self.asked_back = true;
        self.pace.forget();
        (self.sink)(Message {
            give_back: true,
            ..Message::default()
        });
    }

    async fn renew_lease(&mut self) {
        let Some(renew_time) = self.options.lock_renew_time else {
            return;
        };
        self.next_renewal = Some(Instant::now() + renew_time / 2);
        let lease = self.keys.key(&format!("lease:{}", self.options.id));
        let duration = self.options.lock_duration.as_millis() as u64;
        let mut renewal = redis::cmd("SET");
        renewal.arg(&lease).arg(1).arg("PX").arg(duration).arg("GET");
        match self.connection.send(&renewal).await {
            Ok(redis::Value::Nil) => (self.sink)(Message {
                lease_lost: true,
                ..Message::default()
            }),
            Ok(_) => {}
            Err(error) => self.report(error),
        }
    }

    async fn rescue(&mut self) {
        let Some(interval) = self.options.stalled_interval else {
            return;
        };
        self.next_scan = Some(Instant::now() + interval);
        let args = [
            Arg::Int(system_now_ms() as i64),
            Arg::Int(interval.as_millis() as i64),
            Arg::Int(i64::from(self.options.max_stalled_count)),
        ];
        let brought_back = async {
            let mut reply = Reply::new(
                "the answer to rescue",
                RESCUE.run(&self.connection, &self.keys.base, &args).await?,
            )?;
            let mut ids = Vec::with_capacity(reply.len());
            while !reply.is_empty() {
                ids.push(reply.text()?);
            }
            Ok::<_, Error>(ids)
        };
        match brought_back.await {
            Ok(ids) if ids.is_empty() => {}
            Ok(stalled) => {
                self.look_again = true;
                (self.sink)(Message {
                    stalled,
                    ..Message::default()
                });
            }
            Err(error) => self.report(error),
        }
    }

    async fn step(&mut self) {
        self.look_again = false;
        if self.foreign_clock && self.flushes.is_empty() {
            (self.sink)(Message {
                clock: true,
                ..Message::default()
            });
            return;
        }
        let flushes = std::mem::take(&mut self.flushes);
        let defaults = Defaults {
            remove_on_complete: self.options.remove_on_complete,
            remove_on_fail: self.options.remove_on_fail,
        };
        let outcomes = if flushes.is_empty() {
            Ok(Outcomes::none(system_now_ms()))
        } else {
            Outcomes::pack(flushes, system_now_ms(), &mut self.holdings, &defaults)
        };
        match outcomes {
            Ok(outcomes) => {
                if let Err(error) = self.take_step(outcomes).await {
                    self.report(error);
                }
            }
            Err(error) => self.report(error),
        }
    }

    async fn take_step(&mut self, mut outcomes: Outcomes) -> Result<()> {
        self.pace.ended(outcomes.jobs);
        let (want, surplus) = self.pace.ask(self.holdings.jobs(), self.options.concurrency);
        let want = if self.fetching { i64::from(want) } else { -1 };
        self.step_number += 1;
        let (now_ms, lease_ms) = (outcomes.now_ms, self.options.lock_duration.as_millis() as i64);
        let args = [
            Arg::Int(now_ms as i64),
            Arg::from(self.options.id.as_str()),
            Arg::Int(self.step_number),
            Arg::Int(lease_ms),
            Arg::from(self.options.name.as_str()),
            Arg::Int(want),
            Arg::Int(i64::from(surplus)),
            Arg::Int(MAX_BYTES),
            Arg::from(outcomes.blob.as_slice()),
            Arg::from(outcomes.keeps.as_slice()),
        ];
        let reply = loop {
            match STEP.run(&self.connection, &self.keys.base, &args).await {
                Ok(reply) => break reply,
                Err(Error::Closed) => return Err(Error::Closed),
                // what ended must be recorded: it is tried until the server takes it
                Err(error) => {
                    (self.sink)(Message {
                        error: Some(error),
                        ..Message::default()
                    });
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        };
        let was_idle = self.holdings.jobs() == 0;
        let mut reply = Reply::new("the answer to step", reply)?;
        let rejected = outcomes.rejected(reply.array()?)?;
        let mut jobs = self.holdings.take_in(reply.array()?, now_ms)?;
        if let Some(batch) = &mut jobs {
            self.read_traces(batch).await?;
        }
        let due_ms = reply.int()?;
        let gated = reply.int()? == 1;
        let taken = jobs.as_ref().map_or(0, |batch| batch.jobs.len() as i64);
        self.after_fetch(want, taken, due_ms, now_ms);
        if was_idle && taken > 0 {
            self.pace.delivered_to_idle();
        }
        if self.next_renewal.is_none() || outcomes.flushed.is_some() || taken > 0 {
            // the step itself renewed the lease
            self.next_renewal = self.options.lock_renew_time.map(|time| Instant::now() + time / 2);
        }
        let drained = want > 0 && taken == 0 && !self.drained;
        if want > 0 {
            self.drained = taken == 0;
        }
        let message = Message {
            jobs,
            flushed: outcomes.flushed.filter(|number| *number > 0),
            rejected,
            failures: std::mem::take(&mut outcomes.failures),
            finished_on: now_ms,
            drained,
            ..Message::default()
        };
        if message.jobs.is_some() || message.flushed.is_some() || message.drained {
            (self.sink)(message);
        }
        if gated && self.has_surplus() && !self.asked_back {
            self.ask_back();
        }
        Ok(())
    }

    /// Stack traces of jobs that failed before are long and much alike, which Lua's strings bear badly: they do not go through scripts.
    async fn read_traces(&self, batch: &mut Batch) -> Result<()> {
        let mut failed: Vec<&mut Extra> =
            batch.extras.iter_mut().filter(|extra| extra.vitals.failed_reason.is_some()).collect();
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
            extra.vitals.stacktrace = traces.opt_text()?;
        }
        Ok(())
    }

    fn after_fetch(&mut self, want: i64, taken: i64, due_ms: i64, now_ms: u64) {
        self.asked_back &= self.has_surplus();
        if want < 0 {
            return;
        }
        self.hungry = want > 0 && taken < want;
        self.next_due = (self.hungry && due_ms >= 0).then(|| {
            Instant::now() + Duration::from_millis((due_ms as u64).saturating_sub(now_ms)).min(self.longest_wait())
        });
    }

    /// A clock that is not the system's may jump, so nothing is waited for longer than BullMQ would.
    fn longest_wait(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn wait_if_hungry(&mut self) {
        if self.fetching && self.hungry && !self.waiter_is_busy && !self.look_again {
            self.waiter_is_busy = self.ask_to_wait.try_send(self.options.drain_delay).is_ok();
        }
    }

    /// A worker that does not fetch was woken: somebody else should be.
    async fn pass_marker_on(&self) {
        let mut wake = redis::cmd("ZADD");
        wake.arg(self.keys.key("wake")).arg(0).arg("0");
        if let Err(error) = self.connection.send(&wake).await {
            self.report(error);
        }
    }

    /// Gives up the lease; jobs nobody waits for any more wake another worker.
    async fn release(&mut self) {
        if !self.connection.is_connected() {
            return;
        }
        let args = [Arg::from(self.options.id.as_str())];
        if let Err(error) = RELEASE.run(&self.connection, &self.keys.base, &args).await {
            self.report(error);
        }
    }

    fn report(&self, error: Error) {
        if !error.is_connection() {
            (self.sink)(Message {
                error: Some(error),
                ..Message::default()
            });
        }
    }
}
