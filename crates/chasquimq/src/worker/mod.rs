//! The worker: fetches jobs in batches, hands them to whoever runs them, and records how they ended.
//!
//! One step (finish what is done + fetch what can start) is under way at a time; `work_loop` drives it, and `mode` says whether it takes jobs. What a
//! step takes is in `take`, how jobs ended in `record`, how an idle worker waits in `idle`. `standing` is what a worker knows from one step to the next, `step_request`
//! what it asks for, `rounds` when it looks after its lease; `client_clock` keeps the clock of whoever runs jobs, `runner` who runs those of several workers. `manual`
//! is for jobs that no loop runs.

mod client_clock;
#[cfg(feature = "counting")]
pub mod counted;
mod idle;
mod manual;
mod message;
mod mode;
mod options;
mod record;
mod rounds;
mod runner;
mod standing;
mod step_request;
mod take;
mod work_loop;

use std::{
    pin::pin,
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
    time::{Duration, Instant},
};

use tokio::sync::{mpsc, oneshot};

use client_clock::Reading;
use idle::idle_wait::Waiter;
pub use idle::{along::StepAlong, short_way::Told, standby::Standby};
pub use manual::{ManualEnd, ManualStep, ManualStepped};
pub use message::{CancelledJob, Message, RecordedBy, Sink, Taking};
use message::{Command, Question};
pub use options::{GroupRules, RateLimit, WorkerOptions};
pub use record::{
    packed_outcomes::{Failure, FailureState, Rejected},
    report::{Completed, Ended, Outcome, Report},
};
pub use runner::Runner;
use take::offers::Offers;
pub use take::{
    batch::{Batch, BatchJob, Extra, Siblings},
    offers::Words,
    pace::ENDS_A_STEP,
};

use crate::{
    error::{Error, Result},
    keys::Keys,
    redis::{
        call::{
            library::{args, GATHER},
            reply::int,
        },
        connection::Connection,
        session::ConnectionEvent,
        sharing::{Access, Use},
    },
};

/// How long a graceful close waits for a server that answers nothing, or refuses everything.
const PATIENCE_AT_CLOSE: Duration = Duration::from_secs(2);
/// How often it looks.
const LOOK_AT_CLOSE: Duration = Duration::from_millis(100);

/// A running worker. Its loop is a tokio task of the runtime it was made on.
pub struct Worker {
    commands: mpsc::UnboundedSender<Command>,
    id: String,
    connection: Connection,
    // what the queue's keys start with
    base: String,
    refused: Arc<AtomicBool>,
    // those for waits
    news: Connection,
    blocked: Connection,
    standby: Standby,
    offers: Arc<Offers>,
    manual: manual::ManualWaiter,
}

/// What a worker sends by, and waits by.
struct Connections {
    connection: Connection,
    news: Connection,
    blocked: Connection,
    manual: Connection,
}

impl Connections {
    /// One of them is seen as the worker, under this name, and says what the server is like, and that it is gone.
    fn new(access: Access, name: String, sink: &Sink) -> Self {
        let events = sink.clone();
        let listen = move |event| {
            events(Message {
                connection: Some(event),
                ..Message::default()
            })
        };
        let tell = listen.clone();
        let listen_to_others = move |event| {
            if !matches!(event, ConnectionEvent::Closed) {
                tell(event);
            }
        };
        let mut others = access.clone();
        others.options.skip_version_check = true;
        let own = || Connection::new(others.options.clone(), listen_to_others.clone());
        Self {
            connection: Connection::shared(access.named(name), Use::Steps, listen),
            blocked: own(),
            manual: own(),
            news: Connection::shared(others.clone(), Use::News, listen_to_others.clone()),
        }
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Worker").finish_non_exhaustive()
    }
}

// what waits for jobs must not take them for a worker that nobody hears any more
impl Drop for Worker {
    fn drop(&mut self) {
        self.stop_waiting();
        self.manual.close();
    }
}

impl Worker {
    /// Makes a worker that fetches nothing yet. Call it on a tokio runtime.
    pub fn new(access: impl Into<Access>, keys: Keys, options: WorkerOptions, sink: Sink) -> Self {
        let access = access.into().for_keys(&keys.base);
        let Connections {
            connection,
            news,
            blocked,
            manual,
        } = Connections::new(access, keys.worker_client(&options.name), &sink);
        let manual = manual::ManualWaiter::new(manual, connection.clone(), &keys);
        let (id, base) = (options.id.clone(), keys.base.clone());
        let (commands, received) = mpsc::unbounded_channel();
        let told = sink.clone();
        let offers = Arc::new(Offers::new(&options));
        let of_loop = offers.clone();
        let standby = Standby::new(offers.clone());
        let waiter = Waiter::start(blocked.clone(), news.clone(), &keys, &id, standby.clone());
        let work = work_loop::Loop::new(connection.clone(), waiter, keys, options, sink, received, of_loop);
        let refused = work.refused();
        let working = tokio::spawn(work.run());
        tokio::spawn(async move {
            if let Err(end) = working.await {
                told(Message::error(Error::Panicked(end.to_string())));
            }
        });
        Self {
            commands,
            id,
            connection,
            base,
            refused,
            news,
            blocked,
            standby,
            offers,
            manual,
        }
    }

    /// Connects both connections.
    /// # Errors
    /// As [`Connection::ready`].
    pub async fn ready(&self) -> Result<()> {
        self.connection.ready().await?;
        self.news.ready().await
    }

    /// Fetches from now on. `now_ms` is the caller's clock.
    pub fn run(&self, now_ms: u64) {
        self.command(Command::Run(Reading::new(now_ms)));
    }

    /// Fetches no more until [`Worker::run`]. A fetch under way may still bring jobs; those go back, as do all that nobody has drawn.
    pub fn pause(&self) {
        self.command(Command::Pause { done: None });
    }

    /// As [`Worker::pause`], until no fetch is under way.
    pub async fn paused(&self) {
        let (done, paused) = oneshot::channel();
        self.command(Command::Pause { done: Some(done) });
        // a loop that has ended fetches nothing
        let _ = paused.await;
    }

    /// Changes how many jobs run at once.
    pub fn set_concurrency(&self, concurrency: u32) {
        self.command(Command::Concurrency(concurrency));
    }

    /// Changes how many jobs may start in a while.
    pub fn set_limiter(&self, limiter: Option<RateLimit>) {
        self.command(Command::Limiter(limiter));
    }

    /// What jobs are drawn by, where a call for each would cost too much: once [`Worker::may_start`] has said so, a moment ago.
    pub fn words(&self) -> Words {
        self.offers.words().clone()
    }

    /// Whether jobs may start now. If not, the worker takes back what was handed over: others may have it.
    pub fn may_start(&self) -> bool {
        let may_start = self.offers.may_start();
        if !may_start {
            self.take_back();
        }
        may_start
    }

    /// Of jobs that were drawn and are held before they start: they may while this is what it was when they were drawn. Another lease has another number;
    /// `None` while it may be over.
    pub fn lease_number(&self) -> Option<u32> {
        self.offers.lease_number()
    }

    /// Takes back what was handed over and nobody has drawn: others may have it.
    pub fn take_back(&self) {
        self.command(Command::TakeBack);
    }

    /// Draws the next job of a batch ([`Batch::offer`]), which must not start before. False: the worker has taken it back, and all behind it.
    pub fn draw(&self, offer: u32) -> bool {
        let is_drawn = self.may_start() && self.offers.words().draw(offer);
        if !is_drawn {
            self.heard();
        }
        is_drawn
    }

    /// For whoever was asked whether it is heard, or finds what was handed over taken back: it starts what it is given, and more may come.
    pub fn heard(&self) {
        self.command(Command::Heard);
    }

    /// Whether nothing is to start for now: what is not drawn meanwhile is not late.
    pub fn hold(&self, held: bool) {
        self.offers.hold(held);
    }

    /// Reports how jobs ended.
    pub fn finish(&self, report: Report) -> RecordedBy {
        match self.standby.finish(report) {
            Ok((number, command)) => RecordedBy::Along { number, command },
            Err(report) => {
                self.finish_by_loop(report);
                RecordedBy::Loop
            }
        }
    }

    /// As [`Worker::finish`], by the worker's loop whatever there is: on any thread.
    pub fn finish_by_loop(&self, report: Report) {
        let reading = Reading::new(report.now_ms);
        self.command(Command::Finish(report, reading));
    }

    /// Whether the caller's clock is not this machine's, though it may agree with it now. Said before [`Worker::run`] and
    /// [`Worker::tick`]; a clock that differs is noticed without it.
    pub fn fake_clock(&self, is_fake: bool) {
        self.command(Command::FakeClock(is_fake));
    }

    /// Answers [`Message::clock`].
    pub fn tick(&self, now_ms: u64) {
        self.command(Command::Tick(Reading::new(now_ms)));
    }

    fn stop_waiting(&self) {
        self.news.close();
        self.blocked.close();
    }

    /// Scans for jobs of workers that are gone, now and every [`WorkerOptions::stalled_interval`], though nothing is fetched. Until
    /// [`Worker::pause`].
    pub fn scan(&self) {
        self.command(Command::Scan);
    }

    /// Whether somebody wants to know at once when jobs that were taken manually, for this worker ([`ManualStep::worker`]), are cancelled: the worker looks as often as
    /// it would renew its lease, should no message come.
    pub fn attend(&self, attends: bool) {
        self.command(Command::Attend(attends));
    }

    /// Waits until nothing waits, whatever keeps it from starting, and nothing is held. What is delayed does not count. False when the worker is paused, or
    /// closed, before.
    pub async fn emptied(&self) -> bool {
        let (done, emptied) = oneshot::channel();
        self.command(Command::Emptied(Question { after: None, done }));
        emptied.await.unwrap_or(false)
    }

    /// Waits until a job may have come, for `time` at most. False when [`Worker::stop_manual_waits`] ended it.
    pub async fn wait_for_job(&self, time: Duration) -> bool {
        self.manual.wait(time).await
    }

    /// For whoever was told to look for a job and does not: somebody else is told.
    pub async fn wake_another(&self) {
        self.manual.pass_marker_on().await;
    }

    /// Ends every [`Worker::wait_for_job`].
    pub fn stop_manual_waits(&self) {
        self.manual.stop();
    }

    /// Asks to be the one worker of the queue that holds jobs which are too few for its batch: for `time` from now on, zero = no more. Gives how many jobs
    /// may be active at once, 0 = any number; -1 where another worker does, -2 where the queue is paused and nobody is to.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn gather(&self, time: Duration) -> Result<i64> {
        let args = args![self.id.as_str(), time.as_millis() as u64];
        int(GATHER.name, &GATHER.run(&self.connection, &self.base, &args).await?)
    }

    /// Stops. Gracefully: outcomes reported so far are recorded, the lease is given up. With `force`: at once; active jobs stay active
    /// until the lease runs out and another worker's scan brings them back.
    pub async fn close(&self, force: bool) {
        self.manual.stop();
        if !force {
            let (done, closed) = oneshot::channel();
            self.command(Command::Close { done });
            tokio::select! {
                _ = closed => {}
                () = self.unreachable(PATIENCE_AT_CLOSE) => {}
            }
            // one that looks for workers next finds it no more
            let _ = tokio::time::timeout(PATIENCE_AT_CLOSE, self.connection.forget_name()).await;
        }
        self.connection.close();
        self.stop_waiting();
        self.manual.close();
        // a loop that sleeps notices
        self.command(Command::Pause { done: None });
    }

    /// Ends when the server has answered nothing for `patience`, or has refused everything for as long as a close waits for that; and when this worker is
    /// closed.
    pub async fn unreachable(&self, patience: Duration) {
        // what a user of the server may send in any case, behind what has no answer; a write: a replica answers nothing else
        let (mut question, mut since) = (redis::cmd("DEL"), Instant::now());
        question.arg(format!("{}state:none", self.base));
        let mut asked = pin!(self.connection.send_write(&question));
        loop {
            let answer = tokio::time::timeout(LOOK_AT_CLOSE, &mut asked).await.ok();
            let is_heard = answer.is_some() || self.connection.is_connected();
            let is_refused = is_heard && self.refused.load(Ordering::Relaxed);
            match &answer {
                Some(Err(Error::Closed)) => return,
                Some(_) if !is_refused => since = Instant::now(),
                _ if since.elapsed() >= if is_refused { PATIENCE_AT_CLOSE } else { patience } => return,
                _ => {}
            }
            if answer.is_some() {
                tokio::time::sleep(LOOK_AT_CLOSE).await;
                asked.set(self.connection.send_write(&question));
            }
        }
    }

    fn command(&self, command: Command) {
        // a loop that has ended needs no command
        let _ = self.commands.send(command);
    }
}
