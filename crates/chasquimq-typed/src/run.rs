//! Between the engine's worker and the handlers: starts what was delivered, and reports what ended, batch by batch.
//!
//! A delivered job waits here until it has a slot, runs as a task of its own, and ends in the next report. One report is under way at a
//! time; what ends meanwhile goes in the next. So the number of round trips falls as the load grows.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    panic::{catch_unwind, AssertUnwindSafe},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use chasquimq::{
    system_now_ms,
    worker::{CancelledJob, Failure, Message, Rejected, Taking},
    ConnectionEvent, Queue, RateLimit, Worker,
};
use serde::{de::DeserializeOwned, Serialize};
use tokio::{
    sync::mpsc,
    task::{Id, JoinError, JoinSet},
};

use crate::{
    event::{OnEvent, TypedWorkerOptions, WorkerEvent},
    job::{Delivered, TypedJob},
    outcome::{self, JobError, Outcome},
    queue::hold,
    report::{Draft, Told},
    stop::{self, Stops},
};

type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Runs one job to its end, whatever its type.
pub(crate) type Handler = Arc<dyn Fn(Delivered) -> Running + Send + Sync>;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Command {
    Pause,
    Resume,
    Concurrency(u32),
    Limiter(Option<RateLimit>),
    Close { force: bool },
}

/// Wraps a handler of jobs of type `T`. Nothing of the user's runs outside the future, where a panic would end the worker.
pub(crate) fn handler<T, H, F, R, E>(handler: H, queue: Arc<Queue>, stops: Arc<Stops>, worker_id: &str) -> Handler
where
    T: DeserializeOwned + Send + 'static,
    H: Fn(TypedJob<T>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Serialize + Send,
    E: Into<JobError>,
{
    let handler = Arc::new(handler);
    let worker_id: Arc<str> = worker_id.into();
    Arc::new(move |delivered| {
        let (handler, queue, stops, worker_id) = (handler.clone(), queue.clone(), stops.clone(), worker_id.clone());
        Box::pin(async move {
            let job = delivered.read(queue.clone(), stops.clone())?;
            let run = async { handler(job).await };
            let ended = match delivered.time_limit() {
                Some(limit) => {
                    let name = delivered.name().to_owned();
                    stops.within(delivered.handle, name, limit, run).await
                }
                None => run.await,
            };
            let why = match ended.map_err(Into::into) {
                Ok(result) => return outcome::completed(&result),
                Err(why) => why,
            };
            match why {
                JobError::Delayed { pause } => delay(&queue, &delivered, pause, &worker_id).await?,
                JobError::RateLimited { pause } => hold(&queue, pause)
                    .await
                    .map_err(|error| JobError::failed(format!("the rate limit could not be set: {error}")))?,
                JobError::Failed { .. } | JobError::Unrecoverable { .. } => {}
            }
            Err(why)
        })
    })
}

async fn delay(queue: &Queue, job: &Delivered, pause: Duration, worker_id: &str) -> Result<(), JobError> {
    let now_ms = system_now_ms();
    let due_ms = now_ms + pause.as_millis() as u64;
    // of this taking alone: the worker may have taken the job again, where its lease was lost meanwhile
    let token = format!("{worker_id}:{}.0", job.claim());
    let moved = queue.move_to_delayed(now_ms, &job.id(), due_ms, &token).await;
    moved.map_err(|error| JobError::failed(format!("the job could not be delayed: {error}")))
}

pub(crate) struct Runner {
    core: Arc<Worker>,
    slots: usize,
    lock_duration: Duration,
    handler: Handler,
    on_event: Option<OnEvent>,
    messages: mpsc::UnboundedReceiver<Message>,
    // what handlers use to change their jobs
    queue: Arc<Queue>,
    stops: Arc<Stops>,
    waiting: VecDeque<Delivered>,
    running: JoinSet<Outcome>,
    jobs: HashMap<Id, Delivered>,
    reports: u64,
    // what ended since the last report
    ended: Draft,
    // what is told once the report under way is recorded
    reported: Option<Told>,
    paused: bool,
}

impl Runner {
    pub(crate) fn new(
        core: Worker,
        options: TypedWorkerOptions,
        handler: Handler,
        messages: mpsc::UnboundedReceiver<Message>,
        queue: Arc<Queue>,
        stops: Arc<Stops>,
    ) -> Self {
        let is_told = options.on_event.is_some();
        Self {
            core: Arc::new(core),
            slots: options.worker.concurrency as usize,
            lock_duration: options.worker.lock_duration,
            handler,
            on_event: options.on_event,
            messages,
            queue,
            stops,
            waiting: VecDeque::new(),
            running: JoinSet::new(),
            jobs: HashMap::new(),
            reports: 0,
            ended: Draft::new(is_told),
            reported: None,
            paused: false,
        }
    }

    pub(crate) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        self.core.run(system_now_ms());
        let (mut closing, mut abandoned) = (false, false);
        while !closing || !self.running.is_empty() {
            tokio::select! {
                command = commands.recv(), if !abandoned => match command {
                    Some(Command::Close { force: true }) => return self.stop().await,
                    Some(Command::Close { force: false }) => closing = true,
                    Some(_) if closing => {}
                    Some(command) => self.obey(command),
                    None => (closing, abandoned) = (true, true),
                },
                Some(message) = self.messages.recv() => self.hear(message),
                Some(ended) = self.running.join_next_with_id() => self.take_ended(ended),
            }
            if closing {
                self.pause();
            }
            self.start_what_fits();
            self.flush();
        }
        self.end_well(commands).await;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Resume => {
                self.paused = false;
                self.core.run(system_now_ms());
            }
            Command::Concurrency(concurrency) => {
                self.slots = concurrency as usize;
                self.core.set_concurrency(concurrency);
            }
            Command::Limiter(limiter) => self.core.set_limiter(limiter),
            Command::Pause | Command::Close { .. } => self.pause(),
        }
    }

    fn pause(&mut self) {
        if !self.paused {
            self.paused = true;
            // nobody has drawn them: the worker takes them back
            for job in self.waiting.drain(..) {
                self.stops.take(job.handle);
            }
            self.core.pause();
        }
    }

    fn hear(&mut self, message: Message) {
        if let Some(batch) = message.jobs.filter(|_| !self.paused) {
            self.waiting.extend(Delivered::each(batch));
        }
        for cancelled in message.cancelled {
            self.cancel(cancelled);
        }
        if message.clock {
            self.core.tick(system_now_ms());
        }
        if message.flushed.is_some_and(|number| number >= self.reports) {
            if let Some(told) = self.reported.take() {
                self.recorded(told, message.rejected, message.failures);
            }
        }
        if message.asks_for_life {
            self.core.heard();
        }
        if message.drained {
            self.tell(WorkerEvent::Drained);
        }
        if !message.stalled.is_empty() {
            self.tell(WorkerEvent::Stalled { ids: message.stalled });
        }
        if message.lease_lost {
            self.tell(WorkerEvent::LeaseLost);
        }
        if !message.locks_lost.is_empty() {
            self.tell(WorkerEvent::LocksLost {
                ids: message.locks_lost,
            });
        }
        if let Some(error) = message.error {
            self.tell(WorkerEvent::Error(error));
        }
        if let Some(ConnectionEvent::Failed(error)) = message.connection {
            self.tell(WorkerEvent::Error(error));
        }
    }

    fn cancel(&self, cancelled: CancelledJob) {
        let is_it = |job: &&Delivered| cancelled.taking == Taking::Claim(job.claim()) && job.id() == cancelled.id;
        if let Some(job) = self.jobs.values().chain(&self.waiting).find(is_it) {
            self.stops.cancel(job.handle, cancelled.reason);
        }
    }

    fn recorded(&mut self, mut told: Told, rejected: Vec<Rejected>, failures: Vec<Failure>) {
        for (parent, reason) in told.take_held(&rejected) {
            self.ended.end(&parent, Err(JobError::failed(reason)));
        }
        if self.on_event.is_some() {
            for event in told.events(rejected, failures) {
                self.tell(event);
            }
        }
    }

    fn start_what_fits(&mut self) {
        while self.running.len() < self.slots {
            let Some(job) = self.waiting.pop_front() else { return };
            let told = self.stops.take(job.handle);
            if !self.core.draw(job.offer()) {
                // the worker has taken it back, for others
                continue;
            }
            // somebody decided while it waited that it must not run
            let reason = job.fields().and_then(|fields| fields.deferred_failure.clone());
            let decided = reason.map(JobError::unrecoverable);
            if let Some(why) = decided.or_else(|| told.map(stop::Told::into_error)) {
                self.ended.end(&job, Err(why));
                continue;
            }
            let task = self.running.spawn((self.handler)(job.clone()));
            self.jobs.insert(task.id(), job);
        }
    }

    fn take_ended(&mut self, first: Result<(Id, Outcome), JoinError>) {
        let mut next = Some(first);
        while let Some(ended) = next {
            let (id, outcome) = match ended {
                Ok(ended) => ended,
                Err(error) => (error.id(), Err(JobError::failed(panic_message(error)))),
            };
            if let Some(job) = self.jobs.remove(&id) {
                let outcome = match self.stops.take(job.handle) {
                    Some(told) => told.judge(outcome),
                    None => outcome,
                };
                self.ended.end(&job, outcome);
            }
            next = self.running.try_join_next_with_id();
        }
    }

    /// Reports what ended, unless a report is under way.
    fn flush(&mut self) {
        if self.reported.is_none() && !self.ended.is_empty() {
            self.send_report();
        }
    }

    fn send_report(&mut self) {
        self.reports += 1;
        let (report, told) = self.ended.take(self.reports, system_now_ms());
        self.core.finish(report);
        self.reported = Some(told);
    }

    fn tell(&self, event: WorkerEvent) {
        if let Some(on_event) = &self.on_event {
            // a panic has told itself; the jobs need this task
            let _ = catch_unwind(AssertUnwindSafe(|| on_event(event)));
        }
    }

    async fn stop(mut self) {
        self.running.shutdown().await;
        self.core.close(true).await;
        self.queue.close();
    }

    /// Every handler has ended: records the last outcomes, as long as the server can be reached and nobody loses patience.
    async fn end_well(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let (core, lock_duration) = (self.core.clone(), self.lock_duration);
        let impatience = async {
            while let Some(command) = commands.recv().await {
                if matches!(command, Command::Close { force: true }) {
                    return;
                }
            }
            std::future::pending().await
        };
        let force = tokio::select! {
            () = self.record_the_last() => false,
            () = core.unreachable(lock_duration) => true,
            () = impatience => true,
        };
        self.core.close(force).await;
        self.queue.close();
    }

    async fn record_the_last(&mut self) {
        loop {
            if self.reported.is_none() {
                if self.ended.is_empty() {
                    return;
                }
                self.send_report();
            }
            match self.messages.recv().await {
                Some(message) => self.hear(message),
                None => return,
            }
        }
    }
}

fn panic_message(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "the handler was dropped".into();
    };
    let message = match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast_ref::<&str>().copied().unwrap_or("").to_owned(),
    };
    format!("the handler panicked: {message}")
}
