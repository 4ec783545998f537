//! The worker's loop: hears commands, and takes a step whenever there is something to record or room for more jobs.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
    task::Poll,
    time::{Duration, Instant},
};

use redis::Value;
use tokio::sync::mpsc;

use super::{
    caller::Caller,
    due::{Due, Found},
    fetch::{Answer, Batch, Extra, Holdings},
    finish::{Defaults, Failure, Flush, Outcomes, Rejected},
    lane::WaitLane,
    message::{Command, Message, Sink},
    options::WorkerOptions,
    pace::{Pace, SHARE},
    portion,
    wait::{Behind, Pending, Waiter, Woken},
};
use crate::{
    clock::{system_now_ms, system_now_us},
    error::{Error, Result},
    job::{
        large::{self, Large},
        msgpack::Packer,
    },
    keys::Keys,
    lost::Search,
    redis::{
        connection::Connection,
        library::{Arg, RELEASE, STEP},
        reply::Reply,
    },
};

/// Jobs that a step takes to start now; a worker that wants more takes another step.
const MOST_WANTED: i64 = 1000;
/// Bytes of jobs a step takes beyond those that start now.
const MAX_BYTES: i64 = 4 * 1024 * 1024;
/// Longest wait while the caller's clock is one of its own: nothing tells when it jumps. Tests have such clocks.
const FOREIGN_LOOK: Duration = Duration::from_millis(20);
/// The server ends a wait up to a tenth of a second late: a rest is listened through only as far as that cannot outlast it.
const LATE: Duration = Duration::from_millis(150);
/// What a step asks for has about so many bytes, without outcomes.
const STEP_BYTES: usize = 160;
/// For a step's time: the moment at which it is carried out.
const CARRIED_OUT: i64 = -1;
/// Pause before a step that the server refused is tried again.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Loop {
    connection: Connection,
    waiting: Connection,
    waiter: Waiter,
    keys: Keys,
    options: WorkerOptions,
    sink: Sink,
    commands: mpsc::UnboundedReceiver<Command>,
    holdings: Holdings,
    pace: Pace,
    flushes: Vec<Flush>,
    /// When the first of them came.
    ended_since: Option<Instant>,
    // what is to be told of a flush of which a part is recorded
    recorded: (Vec<Rejected>, Vec<Failure>),
    // the server takes no step, which a close must not wait for
    refused: Arc<AtomicBool>,
    step_number: i64,
    // steps sent behind a wait are counted apart: they may be carried out after later ones
    wait_number: i64,
    caller: Caller,
    fetching: bool,
    // the last fetch found less than it wanted: the marker tells when there is more
    hungry: bool,
    look_again: bool,
    due: Due,
    // a rate limit lets this worker start nothing until then
    limited_until: Option<Instant>,
    // the wait under way is for the marker of limits that are lifted
    awaits_lift: bool,
    drained: bool,
    asked_back: bool,
    next_renewal: Option<Instant>,
    next_scan: Option<Instant>,
    // how often another server has taken the place of the last, as far as it was told what is held
    servers: u64,
    // the concurrency changed while a step lies behind a wait
    room_changed: bool,
    // a lane to use from the next wait on
    next_lane: Option<WaitLane>,
    // told when no fetch is under way any more
    pausing: Vec<tokio::sync::oneshot::Sender<()>>,
    closing: Vec<tokio::sync::oneshot::Sender<()>>,
}

/// What a step asks for.
struct Asked {
    slot: &'static str,
    number: i64,
    // of the caller's clock
    now_ms: i64,
    want: i64,
    surplus: i64,
    leaves_due: bool,
    // the system's clock, when it was put together
    sent_us: i64,
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
        let waiter = Waiter::start(waiting.clone(), &keys);
        Self {
            connection,
            waiting,
            waiter,
            keys,
            options,
            sink,
            commands,
            holdings: Holdings::default(),
            pace: Pace::new(),
            flushes: Vec::new(),
            ended_since: None,
            recorded: Default::default(),
            refused: Arc::default(),
            step_number: 0,
            wait_number: 0,
            caller: Caller::new(),
            fetching: false,
            hungry: false,
            look_again: false,
            due: Due::new(),
            limited_until: None,
            awaits_lift: false,
            drained: false,
            asked_back: false,
            next_renewal: None,
            next_scan: None,
            servers: 0,
            room_changed: false,
            next_lane: None,
            pausing: Vec::new(),
            closing: Vec::new(),
        }
    }

    /// Whether the server refuses what must be done.
    pub(super) fn refused(&self) -> Arc<AtomicBool> {
        self.refused.clone()
    }

    pub(super) async fn run(mut self) {
        while self.turn().await {}
        // whoever closed waits for this
        for done in self.closing.drain(..) {
            let _ = done.send(());
        }
    }

    /// Waits for something to do and does it. False at the end.
    async fn turn(&mut self) -> bool {
        // what was heard on the way of the last step is not waited for
        let timer = if self.has_step_to_take() {
            Some(Instant::now())
        } else {
            self.next_timer()
        };
        tokio::select! {
            biased;
            command = self.commands.recv() => match command {
                Some(command) => self.hear(command),
                // nobody can command this worker any more
                None => return false,
            },
            (woken, behind) = self.waiter.woken(&mut self.holdings), if self.waiter.pending != Pending::Nothing => {
                self.wake(woken, behind).await;
            }
            () = tokio::time::sleep_until(timer.unwrap_or_else(Instant::now).into()), if timer.is_some() => self.ring().await,
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
        loop {
            let servers = self.connection.servers();
            if servers != self.servers {
                self.disown(servers).await;
            }
            if self.has_step_to_take() {
                self.step().await;
            }
            // a step may have met another server
            if self.connection.servers() == self.servers {
                break;
            }
        }
        if self.flushes.is_empty() {
            for done in self.pausing.drain(..) {
                let _ = done.send(());
            }
        }
        if !self.closing.is_empty() && self.flushes.is_empty() {
            // whoever closes gracefully has let its running jobs end: what is still held never started
            let held = self.holdings.handles();
            if !held.is_empty() {
                self.flushes.push(Flush::returning(held, system_now_ms()));
                self.step().await;
            }
            self.release().await;
            return false;
        }
        self.wait_if_hungry();
        true
    }

    fn has_step_to_take(&self) -> bool {
        let steps = matches!(self.waiter.pending, Pending::Step(_));
        let has_ends = !self.flushes.is_empty() && self.shares_until().is_none_or(|until| until <= Instant::now());
        has_ends || (self.fetching && self.look_again && !steps)
    }

    /// Until when what has ended may wait for more to share a step with: while no slot is idle, as jobs of the surplus run there, and nobody
    /// waits for the step.
    fn shares_until(&self) -> Option<Instant> {
        let ended: usize = self.flushes.iter().map(|flush| flush.completed.len()).sum();
        let is_plain = |flush: &Flush| flush.others.is_empty() && !flush.completed.is_empty();
        let is_waited_for = !self.fetching
            || self.look_again
            || self.room_changed
            || self.caller.is_foreign()
            || self.options.limiter.is_some()
            || !self.closing.is_empty()
            || !self.pausing.is_empty();
        let is_busy = self.holdings.jobs() as usize >= ended + self.options.concurrency as usize;
        if is_waited_for || !is_busy || !self.flushes.iter().all(is_plain) || !self.pace.shares(ended) {
            return None;
        }
        Some(self.ended_since? + SHARE)
    }

    fn hear(&mut self, command: Command) {
        match command {
            Command::FakeClock(is_fake) => self.caller.fakes(is_fake),
            Command::Run { now_ms } => {
                self.caller.says(now_ms);
                if !self.fetching {
                    self.fetching = true;
                    self.look_again = true;
                    self.next_scan = self.options.stalled_interval.map(|_| Instant::now());
                }
            }
            Command::Pause { done } => {
                self.fetching = false;
                self.hungry = false;
                self.next_scan = None;
                self.pausing.extend(done);
            }
            Command::Concurrency(concurrency) => {
                self.room_changed = matches!(self.waiter.pending, Pending::Step(_));
                self.look_again |= concurrency > self.options.concurrency;
                self.options.concurrency = concurrency;
            }
            Command::Limiter(limiter) => {
                self.room_changed = matches!(self.waiter.pending, Pending::Step(_));
                self.options.limiter = limiter;
                self.end_rest();
            }
            Command::Finish(flush) => {
                self.caller.says(flush.now_ms);
                if self.flushes.is_empty() {
                    self.ended_since = Some(Instant::now());
                }
                self.flushes.push(flush);
            }
            Command::Tick { now_ms } => {
                self.caller.says(now_ms);
                // the clock may have jumped to where something is due
                self.flushes.push(Flush {
                    now_ms,
                    ..Flush::default()
                });
            }
            Command::Lane(lane) => self.next_lane = Some(lane),
            Command::Scan => {
                if self.options.stalled_interval.is_some() && self.next_scan.is_none() {
                    self.next_scan = Some(Instant::now());
                }
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
        // a step behind a wait looks by itself when something is due
        let steps = matches!(self.waiter.pending, Pending::Step(_));
        let due = self.due.next().filter(|_| self.fetching && self.hungry && !steps);
        let renewal = self.next_renewal.filter(|_| self.holdings.jobs() > 0);
        let rested = self.limited_until.filter(|_| self.fetching);
        let shared = (!self.flushes.is_empty()).then(|| self.shares_until()).flatten();
        [surplus, due, renewal, rested, shared, self.next_scan]
            .into_iter()
            .flatten()
            .min()
    }

    fn has_surplus(&self) -> bool {
        self.holdings.jobs() > self.options.concurrency
    }

    /// A timer rang: find out which.
    async fn ring(&mut self) {
        let now = Instant::now();
        self.look_again |= self.due.rings(now);
        if self.limited_until.is_some_and(|end| end <= now) {
            self.end_rest();
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

    fn is_limited(&self) -> bool {
        self.limited_until.is_some_and(|end| end > Instant::now())
    }

    /// A rate limit may let jobs start again. Looking in vain once more is told once more, as BullMQ does.
    fn end_rest(&mut self) {
        if self.limited_until.take().is_some() {
            self.drained = false;
            self.look_again = true;
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
        // a server that is full refuses a SET, but not this
        let mut renewal = redis::cmd("PEXPIRE");
        renewal.arg(&lease).arg(duration);
        match self.connection.send(&renewal).await {
            Ok(redis::Value::Int(0)) => (self.sink)(Message {
                lease_lost: true,
                ..Message::default()
            }),
            Ok(_) => return,
            Err(error) => return self.report(error),
        }
        let mut anew = redis::cmd("SET");
        anew.arg(&lease).arg(1).arg("PX").arg(duration);
        if let Err(error) = self.connection.send(&anew).await {
            self.report(error);
        }
    }

    async fn rescue(&mut self) {
        let Some(interval) = self.options.stalled_interval else {
            return;
        };
        self.next_scan = Some(Instant::now() + interval);
        // what this scan brings back wakes this worker as well, and is `stalled` before it is active
        self.waiter.hold_back(true);
        let search = Search {
            interval_ms: interval.as_millis() as i64,
            owner: "",
            is_held: &|_, _| false,
            max_stalled: self.options.max_stalled_count,
        };
        let (stalled, done) = search.bring_back(&self.connection, &self.keys, system_now_ms()).await;
        self.look_again |= !stalled.is_empty();
        self.tell_stalled(stalled, done);
        self.waiter.hold_back(false);
    }

    fn tell_stalled(&mut self, stalled: Vec<String>, done: Result<()>) {
        if !stalled.is_empty() {
            (self.sink)(Message {
                stalled,
                ..Message::default()
            });
        }
        if let Err(error) = done {
            self.report(error);
        }
    }

    async fn break_off(&mut self) {
        let (woken, behind) = self.waiter.break_off(&mut self.holdings).await;
        self.wake(woken, behind).await;
    }

    /// Another server is there, which may lack the last that happened: it is told what is held, and brings back the rest.
    async fn disown(&mut self, servers: u64) {
        self.servers = servers;
        if matches!(self.waiter.pending, Pending::Step(_)) {
            // what that took is held, too
            self.break_off().await;
        }
        let mut held: HashMap<String, Vec<i64>> = HashMap::new();
        for (id, claim) in self.holdings.ids() {
            held.entry(id).or_default().push(claim as i64);
        }
        let search = Search {
            interval_ms: 0,
            owner: &self.options.id,
            is_held: &|id, claim| held.get(id).is_some_and(|claims| claims.contains(&claim)),
            max_stalled: self.options.max_stalled_count,
        };
        let (stalled, done) = search.bring_back(&self.connection, &self.keys, system_now_ms()).await;
        self.look_again |= self.fetching && !stalled.is_empty();
        self.tell_stalled(stalled, done);
    }

    async fn step(&mut self) {
        self.look_again = false;
        if self.caller.is_foreign() && self.flushes.is_empty() {
            (self.sink)(Message {
                clock: true,
                ..Message::default()
            });
            return;
        }
        let done = match self.gather() {
            Ok(outcomes) => self.take_steps(outcomes).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            self.report(error);
        }
    }

    /// Packs what ended.
    fn gather(&mut self) -> Result<Outcomes> {
        for flush in &mut self.flushes {
            flush.now_ms = self.caller.date(flush.now_ms);
        }
        let (flushes, is_part) = portion::cut(&mut self.flushes);
        let defaults = Defaults {
            remove_on_complete: self.options.remove_on_complete,
            remove_on_fail: self.options.remove_on_fail,
            max_started_attempts: self.options.max_started_attempts,
            metrics_minutes: self.options.metrics_minutes,
        };
        if flushes.is_empty() {
            return Ok(Outcomes::none(system_now_ms()));
        }
        let mut packed = Outcomes::pack(flushes, system_now_ms(), &mut self.holdings, &defaults)?;
        packed.is_part = is_part;
        Ok(packed)
    }

    /// Takes a step, and further ones while more has ended by the time an answer comes: then the next step is sent first, so that the
    /// server works while the answer is read.
    async fn take_steps(&mut self, mut outcomes: Outcomes) -> Result<()> {
        let mut asked = self.ask(&outcomes, 0);
        let mut reply = self.send_step(&asked, &outcomes).await?;
        while let Some(brought) = self.may_go_on(&reply) {
            let next = match self.gather() {
                Ok(next) => next,
                Err(error) => {
                    self.report(error);
                    break;
                }
            };
            let next_asked = self.ask(&next, brought);
            let packed = self.pack_step(&next_asked, &next);
            let command = STEP.by_name(&self.connection, &self.keys.base, &step_args(&packed, &next));
            let connection = self.connection.clone();
            let mut answer = std::pin::pin!(async move { connection.send_write(&command).await });
            let early = poll_once(answer.as_mut()).await;
            // lets the connection's task write it
            tokio::task::yield_now().await;
            if let Err(error) = self.absorb(reply, &asked, outcomes).await {
                self.report(error);
            }
            let answered = match early {
                Some(answered) => answered,
                None => answer.await,
            };
            (asked, outcomes) = (next_asked, next);
            reply = match answered {
                Ok(reply) => reply,
                Err(Error::Closed) => return Err(Error::Closed),
                Err(_) => self.send_step(&asked, &outcomes).await?,
            };
        }
        self.absorb(reply, &asked, outcomes).await
    }

    /// The jobs that an answer brings, if the next step may be sent before it is read: when there is something to record, and nothing else to do.
    fn may_go_on(&mut self, reply: &Value) -> Option<u32> {
        while let Ok(command) = self.commands.try_recv() {
            self.hear(command);
        }
        let has_other_work = !self.fetching
            || self.connection.servers() != self.servers
            || self.flushes.is_empty()
            || self.shares_until().is_some()
            || self.caller.is_foreign()
            || self.options.limiter.is_some()
            || self.waiter.pending != Pending::Nothing
            || !self.closing.is_empty()
            || !self.pausing.is_empty()
            || self.next_timer().is_some_and(|timer| timer <= Instant::now());
        if has_other_work {
            return None;
        }
        let (brought, now_ms) = Answer::plainly_brings(reply)?;
        self.caller.stepped(now_ms);
        Some(brought)
    }

    /// What the next step asks for, `coming` jobs being about to be held.
    fn ask(&mut self, outcomes: &Outcomes, coming: u32) -> Asked {
        self.look_again = false;
        self.pace.ended(outcomes.jobs);
        // a job that follows on a slot is active after the one before it is told to have ended
        let (want, surplus) = if outcomes.is_part { (-1, 0) } else { self.room(coming) };
        self.step_number += 1;
        Asked {
            slot: "s",
            number: self.step_number,
            now_ms: outcomes.now_ms as i64,
            want,
            surplus,
            leaves_due: self.due.is_left(Instant::now()) && !self.caller.is_foreign(),
            sent_us: system_now_us(),
        }
    }

    /// Sends a step until the server takes it.
    async fn send_step(&self, asked: &Asked, outcomes: &Outcomes) -> Result<Value> {
        let packed = self.pack_step(asked, outcomes);
        let args = step_args(&packed, outcomes);
        loop {
            match STEP.run(&self.connection, &self.keys.base, &args).await {
                Ok(reply) => {
                    self.refused.store(false, Ordering::Relaxed);
                    return Ok(reply);
                }
                Err(Error::Closed) => return Err(Error::Closed),
                // what ended must be recorded: it is tried until the server takes it
                Err(error) => {
                    (self.sink)(Message {
                        error: Some(error),
                        ..Message::default()
                    });
                    self.refused.store(true, Ordering::Relaxed);
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        }
    }

    /// What a step asks for, as `lua/step.lua` reads it.
    fn pack_step(&self, asked: &Asked, outcomes: &Outcomes) -> Vec<u8> {
        let limiter = self.options.limiter;
        let mut packed = Packer::with_capacity(STEP_BYTES + outcomes.blob.len() + outcomes.keeps.len());
        packed
            // a server that knows no functions repeats the arguments up to a zero byte, in an error that has to be text
            .int(0)
            .int(asked.now_ms)
            .str(&self.options.id)
            .str(asked.slot)
            .int(asked.number)
            .int(self.options.lock_duration.as_millis() as i64)
            .str(&self.options.name)
            .int(asked.want)
            .int(asked.surplus)
            .int(MAX_BYTES)
            .int(self.caller.offset_us())
            .int(limiter.map_or(0, |limiter| limiter.max as i64))
            .int(limiter.map_or(0, |limiter| limiter.duration.as_millis() as i64))
            .int(i64::from(asked.leaves_due));
        packed.0.extend_from_slice(&outcomes.blob);
        packed.0.extend_from_slice(&outcomes.keeps);
        packed.0
    }

    /// Jobs to take now, and as surplus, `coming` jobs being about to be held; -1 = none at all.
    fn room(&self, coming: u32) -> (i64, i64) {
        let held = self.holdings.jobs() + coming;
        let (want, surplus) = self.pace.ask(held, self.options.concurrency);
        match self.fetching {
            true if self.is_limited() => (0, 0),
            true if i64::from(want) > MOST_WANTED => (MOST_WANTED, 0),
            true => (i64::from(want), i64::from(surplus)),
            false => (-1, 0),
        }
    }

    /// Takes in the answer to a step.
    async fn absorb(&mut self, reply: Value, asked: &Asked, outcomes: Outcomes) -> Result<()> {
        let answer = Answer::read(reply, &mut self.holdings)?;
        self.caller.measure(answer.server_us, asked.sent_us);
        self.settle(answer, Instant::now(), asked.want, outcomes).await
    }

    /// Takes in the answer to a step behind a wait. It is perhaps old by now: of a lane's it was read elsewhere.
    async fn absorb_late(&mut self, answer: Answer, want: i64) -> Result<()> {
        let late = self.caller.measure_late(answer.server_us);
        let carried_out = Instant::now().checked_sub(late).unwrap_or_else(Instant::now);
        self.settle(answer, carried_out, want, Outcomes::none(0)).await
    }

    #[allow(clippy::too_many_lines, reason = "goes when the loop is split")]
    async fn settle(
        &mut self,
        answer: Answer,
        carried_out: Instant,
        mut want: i64,
        mut outcomes: Outcomes,
    ) -> Result<()> {
        let (taken, now_ms, mut jobs) = (answer.taken, answer.now_ms, answer.jobs);
        self.caller.stepped(now_ms);
        let rejected = outcomes.rejected(answer.rejected, &mut self.holdings)?;
        // what is held on to has its place still: the step took less (`lua/lib/turn`)
        let kept = rejected.iter().filter(|refusal| refusal.is_held()).count();
        want = (want - kept as i64).max(want.min(0));
        for error in answer.unreadable {
            self.report(error);
        }
        if let Some(batch) = &mut jobs {
            if let Err(error) = self.read_traces(batch).await {
                self.report(error);
            }
            self.read_data(batch).await?;
        }
        if answer.limited_ms > 0 {
            // a window ends with a whole millisecond of the server's clock
            let rest = Duration::from_micros(answer.limited_ms * 1000 - answer.server_us as u64 % 1000);
            let rest = rest.min(self.options.maximum_rate_limit_delay);
            self.limited_until = Some(carried_out + rest);
            if !outcomes.limited.is_empty() {
                // nothing was looked for
                want = want.min(0);
            }
        }
        let found = Found {
            taken,
            due_ms: answer.due_ms,
            now_ms,
            carried_out,
        };
        self.after_fetch(want, found);
        if answer.was_idle && taken > 0 {
            self.pace.delivered_to_idle();
        }
        // the step itself renewed the lease
        self.next_renewal = self.options.lock_renew_time.map(|time| carried_out + time / 2);
        let found_all = taken > 0 && answer.limited_ms == 0;
        let drained = want > 0 && !found_all && !self.drained;
        if want > 0 {
            self.drained = !found_all;
        }
        if !self.fetching {
            // nobody is to run them any more
            if let Some(batch) = jobs.take() {
                let handles = batch.base..batch.base + batch.jobs.len() as u32;
                self.flushes.push(Flush::returning(handles, now_ms));
            }
        }
        self.recorded.0.extend(rejected);
        self.recorded.1.append(&mut outcomes.failures);
        let (rejected, failures) = match outcomes.is_part {
            true => Default::default(),
            false => std::mem::take(&mut self.recorded),
        };
        let message = Message {
            jobs,
            flushed: outcomes.flushed.filter(|number| *number > 0),
            rejected,
            failures,
            finished_on: outcomes.now_ms,
            drained,
            ..Message::default()
        };
        if message.jobs.is_some() || message.flushed.is_some() || message.drained {
            (self.sink)(message);
        }
        if answer.gated && self.has_surplus() && !self.asked_back {
            self.ask_back();
        }
        Ok(())
    }

    /// Stack traces of jobs that failed before are long and much alike, which Lua's strings bear badly: they do not go through scripts.
    async fn read_traces(&self, batch: &mut Batch) -> Result<()> {
        let mut failed: Vec<&mut Extra> = batch.extras.iter_mut().filter(|extra| extra.has_failed()).collect();
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

    /// Data that lie apart (`lua/lib/large.lua`). No job starts without them: they are asked for until they come.
    async fn read_data(&self, batch: &mut Batch) -> Result<()> {
        let mut found = HashMap::new();
        for (at, extra) in batch.extras.iter_mut().enumerate() {
            if extra.vitals.large_data.is_none() {
                continue;
            }
            let data = loop {
                match Large::read(&self.connection, &self.keys, &extra.id, &extra.vitals).await {
                    Ok(large) => break large.data,
                    Err(Error::Closed) => return Err(Error::Closed),
                    Err(error) => self.report(error),
                }
                tokio::time::sleep(REFUSED_PAUSE).await;
            };
            match data {
                Some(data) => drop(found.insert(at as u32, data)),
                None => drop(extra.vitals.deferred_failure.get_or_insert_with(large::missing)),
            }
        }
        if !found.is_empty() {
            batch.put_data(&found);
        }
        Ok(())
    }

    fn after_fetch(&mut self, want: i64, found: Found) {
        // what was delivered after the question has to be asked for again
        self.asked_back &= self.has_surplus() && found.taken == 0;
        if want < 0 {
            return;
        }
        self.look_again |= found.taken >= MOST_WANTED && self.room(0).0 > 0;
        self.hungry = want > 0 && found.taken < want;
        if self.hungry {
            self.due.has_room(found);
        } else {
            self.due.is_full();
        }
    }

    fn wait_if_hungry(&mut self) {
        if !self.fetching || self.waiter.pending != Pending::Nothing || self.look_again {
            return;
        }
        if let Some(end) = self.limited_until {
            let time = end.saturating_duration_since(Instant::now()).saturating_sub(LATE);
            if !time.is_zero() {
                self.awaits_lift = true;
                self.waiter.wait_for(self.keys.key("open"), time);
            }
            return;
        }
        if !self.hungry {
            return;
        }
        let until_due = self.due.next().map(|due| due.saturating_duration_since(Instant::now()));
        let time = until_due.map_or(self.options.drain_delay, |until| until.min(self.options.drain_delay));
        if let Some(lane) = self.next_lane.take() {
            self.waiter.use_lane(Some(lane));
        }
        // a caller's clock of its own cannot be told to the server beforehand
        if self.caller.is_foreign() {
            self.waiter.wait(time.min(FOREIGN_LOOK));
            return;
        }
        // when something is due soon, this worker looks by its own clock: the server's end of a wait comes late
        if self.holdings.jobs() > 0 || time < self.options.drain_delay {
            self.waiter.wait(time);
            return;
        }
        self.ask_for_lane();
        self.wait_number += 1;
        let (want, surplus) = self.room(0);
        let asked = Asked {
            slot: "w",
            number: self.wait_number,
            now_ms: CARRIED_OUT,
            want,
            surplus,
            leaves_due: false,
            sent_us: system_now_us(),
        };
        let behind = Behind {
            number: self.wait_number,
            want,
        };
        let packed = self.pack_step(&asked, &Outcomes::none(0));
        let step = STEP.by_name(&self.connection, &self.keys.base, &[Arg::from(packed.as_slice())]);
        let lease = self.options.lock_renew_time.map(|time| time / 2);
        self.waiter.wait_and_step(time, behind, step, lease, &mut self.holdings);
    }

    fn ask_for_lane(&mut self) {
        if !self.options.watches_lanes || !self.waiter.wants_lane() {
            return;
        }
        let (waiting, sink) = (self.waiting.clone(), self.sink.clone());
        tokio::spawn(async move {
            // without a lane, waits go by the connection, which reports what is wrong
            if let Some(lane) = WaitLane::open(&waiting).await {
                sink(Message {
                    lane: Some(lane),
                    ..Message::default()
                });
            }
        });
    }

    /// A step behind a wait takes jobs whenever it pleases: it must not, when this worker has come to want something else.
    fn must_break_off(&self) -> bool {
        matches!(self.waiter.pending, Pending::Step(_))
            && (!self.fetching || !self.flushes.is_empty() || self.room_changed || self.caller.is_foreign())
    }

    /// A wait ended.
    async fn wake(&mut self, woken: Woken, behind: Option<Behind>) {
        self.room_changed = false;
        let Behind { number, want } = behind.unwrap_or_default();
        let absorbed = match woken {
            Woken::Marker(came) => {
                self.hear_marker(came).await;
                Ok(())
            }
            Woken::Stepped(reply) => match Answer::read(reply, &mut self.holdings) {
                Ok(answer) => self.absorb_late(answer, want).await,
                Err(error) => Err(error),
            },
            Woken::Read(read) => match *read {
                Ok(answer) => self.absorb_late(answer, want).await,
                Err(error) => Err(error),
            },
            Woken::Lost => self.send_again(number).await,
        };
        // the next step behind a wait needs the clock's offset, which a step of its own tells
        self.look_again |= self.caller.is_doubtful() && self.fetching;
        if let Err(error) = absorbed {
            self.report(error);
        }
    }

    /// Learns what became of a step behind a wait, by sending it again: what it took is taken in; if it never was carried out, it is now.
    async fn send_again(&mut self, number: i64) -> Result<()> {
        // a caller's clock of its own has to be asked for first
        let (want, surplus) = if self.caller.is_foreign() {
            (-1, 0)
        } else {
            self.room(0)
        };
        self.look_again = self.fetching && self.caller.is_foreign();
        let asked = Asked {
            slot: "w",
            number,
            now_ms: system_now_ms() as i64,
            want,
            surplus,
            leaves_due: false,
            sent_us: system_now_us(),
        };
        let reply = self.send_step(&asked, &Outcomes::none(0)).await?;
        self.absorb(reply, &asked, Outcomes::none(0)).await
    }

    /// A wait without a step ended, by its marker or its time.
    async fn hear_marker(&mut self, came: bool) {
        if std::mem::take(&mut self.awaits_lift) {
            if came {
                // it concerns every worker that rests
                self.pass_on("open").await;
                self.end_rest();
            }
            return;
        }
        if came && (!self.fetching || self.is_limited()) {
            // somebody else should be woken
            self.pass_on("wake").await;
        }
        self.look_again = self.fetching && !self.is_limited();
    }

    async fn pass_on(&self, marker: &str) {
        let mut wake = redis::cmd("ZADD");
        wake.arg(self.keys.key(marker)).arg(0).arg("0");
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

fn step_args<'a>(packed: &'a [u8], outcomes: &'a Outcomes) -> Vec<Arg<'a>> {
    let mut args = vec![Arg::from(packed)];
    args.extend(outcomes.large_results());
    args
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
