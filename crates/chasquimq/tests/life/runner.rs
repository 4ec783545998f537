//! A worker and whoever runs its jobs: each job a task, as many at once as the worker's concurrency, outcomes flushed together.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::{Arc, LazyLock, Mutex},
};

use chasquimq::{
    system_now_ms,
    worker::{Completed, Ended, Message, Outcome, RecordedBy, Report, Worker},
    ConnectOptions, ConnectionEvent, Keys, StateFields, WorkerOptions,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
};

#[cfg(unix)]
use crate::lane::watch;

/// Watches connections on a thread of its own, as somebody's event loop does: one descriptor may be watched once by each.
#[cfg(unix)]
pub static EVENT_LOOP: LazyLock<Runtime> = LazyLock::new(|| {
    let built = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    built.expect("a thread")
});

/// A job in its handler's hands.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: String,
    pub data: String,
    pub fields: StateFields,
    handle: u32,
    offer: u32,
}

/// How a handler ends.
#[derive(Debug)]
pub enum End {
    /// With a result, JSON text.
    Completed(Option<String>),
    Failed(&'static str),
    Other(Outcome),
}

impl End {
    pub const DONE: End = End::Completed(None);
}

/// What a worker told beside its jobs.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    pub stalled: Vec<String>,
    pub rejected: Vec<String>,
    pub errors: Vec<String>,
    /// What was wrong with connections.
    pub faults: Vec<String>,
    pub drained: usize,
    /// Batches that came without the worker's loop.
    pub by_socket: usize,
    pub lease_lost: bool,
}

type Running = Pin<Box<dyn Future<Output = End> + Send>>;

pub struct Runner {
    worker: Arc<Worker>,
    seen: Arc<Mutex<Seen>>,
    close: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Runner {
    pub fn start<F>(
        connect: ConnectOptions,
        keys: Keys,
        options: WorkerOptions,
        handler: impl Fn(Job) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = End> + Send + 'static,
    {
        Self::start_with(connect, keys, options, handler, 1)
    }

    /// The same, where so many reports may be on their way: the next step is sent before the answer to the last is read.
    pub fn start_with<F>(
        connect: ConnectOptions,
        keys: Keys,
        options: WorkerOptions,
        handler: impl Fn(Job) -> F + Send + Sync + 'static,
        most_reports: u64,
    ) -> Self
    where
        F: Future<Output = End> + Send + 'static,
    {
        let (sender, messages) = mpsc::unbounded_channel();
        // a message for a runner that is gone is for nobody
        let messages_of_lanes = sender.clone();
        let sink = Arc::new(move |message| drop(sender.send(message)));
        let slots = options.concurrency as usize;
        let worker = Arc::new(Worker::new(connect, keys, options, sink));
        let seen = Arc::new(Mutex::default());
        let (close, closing) = oneshot::channel();
        let running = Loop {
            worker: worker.clone(),
            messages_of_lanes,
            carried: None,
            slots,
            handler: Box::new(move |job| Box::pin(handler(job))),
            seen: seen.clone(),
            waiting: VecDeque::new(),
            running: JoinSet::new(),
            handles: HashMap::new(),
            ended: Vec::new(),
            reports: 0,
            recorded: 0,
            most_reports,
        };
        worker.run(system_now_ms());
        Self {
            worker,
            seen,
            close: Some(close),
            task: tokio::spawn(running.run(messages, closing)),
        }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().expect("seen").clone()
    }

    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Waits for what runs, and closes.
    pub async fn close(mut self) -> Seen {
        if let Some(close) = self.close.take() {
            let _ = close.send(());
        }
        self.task.await.expect("a runner");
        let seen = self.seen.lock().expect("seen").clone();
        seen
    }

    /// Ends like a program that forgets its worker.
    pub async fn abandon(self) {
        self.task.abort();
        // it holds the worker, too
        let _ = self.task.await;
    }

    /// Ends like a process that is killed: nothing more is run, reported or given up.
    pub async fn kill(self) {
        self.task.abort();
        self.worker.close(true).await;
    }
}

struct Loop {
    worker: Arc<Worker>,
    messages_of_lanes: mpsc::UnboundedSender<Message>,
    // steps that the lane in use is to send
    carried: Option<mpsc::UnboundedSender<(i64, Vec<u8>)>>,
    slots: usize,
    handler: Box<dyn Fn(Job) -> Running + Send>,
    seen: Arc<Mutex<Seen>>,
    waiting: VecDeque<Job>,
    running: JoinSet<End>,
    handles: HashMap<tokio::task::Id, u32>,
    ended: Vec<(u32, End)>,
    reports: u64,
    recorded: u64,
    most_reports: u64,
}

impl Loop {
    async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>, mut closing: oneshot::Receiver<()>) {
        let mut is_closing = false;
        while !is_closing || !self.running.is_empty() || !self.ended.is_empty() || self.recorded < self.reports {
            tokio::select! {
                _ = &mut closing, if !is_closing => {
                    is_closing = true;
                    // the worker takes back what nobody has drawn
                    self.waiting.clear();
                    self.worker.pause();
                }
                Some(message) = messages.recv() => {
                    self.hear(message);
                    if is_closing {
                        self.waiting.clear();
                    }
                }
                Some(done) = self.running.join_next_with_id() => {
                    let (task, end) = done.expect("a handler");
                    let handle = self.handles.remove(&task).expect("its job");
                    self.ended.push((handle, end));
                }
            }
            self.start();
            if self.reports < self.recorded + self.most_reports && !self.ended.is_empty() {
                self.flush();
            }
        }
        self.worker.close(false).await;
    }

    fn hear(&mut self, message: Message) {
        if let Some(batch) = message.jobs {
            let mut text = batch.text.as_str();
            for (job, handle) in batch.jobs.iter().zip(batch.base..) {
                let (_, rest) = text.split_at(job.name_len.unwrap_or(0) as usize);
                let (data, rest) = rest.split_at(job.data_len as usize);
                text = rest;
                let extra = job.extra.map(|at| &batch.extras[at as usize]);
                self.waiting.push_back(Job {
                    id: extra.map_or_else(|| job.number.to_string(), |extra| extra.id.clone()),
                    data: data.to_owned(),
                    fields: extra.map_or_else(StateFields::default, |extra| extra.fields.clone()),
                    handle,
                    offer: batch.offer,
                });
            }
        }
        if message.asks_for_life {
            self.worker.heard();
        }
        #[cfg(unix)]
        if let Some(standby) = message.standby {
            let (carry, carried) = mpsc::unbounded_channel();
            self.carried = Some(carry);
            let (messages, seen) = (self.messages_of_lanes.clone(), self.seen.clone());
            EVENT_LOOP.spawn(watch(standby, carried, move |message| {
                seen.lock().expect("seen").by_socket += 1;
                // for a runner that is gone it is for nobody
                let _ = messages.send(message);
            }));
        }
        self.recorded = message.flushed.unwrap_or(self.recorded);
        let mut seen = self.seen.lock().expect("seen");
        seen.stalled.extend(message.stalled);
        seen.rejected
            .extend(message.rejected.iter().map(|rejected| rejected.error.to_string()));
        seen.errors.extend(message.error.iter().map(|error| error.to_string()));
        if let Some(ConnectionEvent::Failed(fault)) = &message.connection {
            seen.faults.push(fault.to_string());
        }
        seen.drained += usize::from(message.drained);
        seen.lease_lost |= message.lease_lost;
    }

    fn start(&mut self) {
        while self.running.len() < self.slots {
            let Some(job) = self.waiting.pop_front() else { return };
            let handle = job.handle;
            if !self.worker.draw(job.offer) {
                // it was taken back
                continue;
            }
            // a job that stalled too often is failed, not run
            let running = match job.fields.deferred_failure {
                Some(_) => Box::pin(std::future::ready(End::Failed("job stalled more than allowable limit"))),
                None => (self.handler)(job),
            };
            let task = self.running.spawn(running);
            self.handles.insert(task.id(), handle);
        }
    }

    fn flush(&mut self) {
        self.reports += 1;
        let mut report = Report {
            number: self.reports,
            now_ms: system_now_ms(),
            ..Report::default()
        };
        for (handle, end) in self.ended.drain(..) {
            let outcome = match end {
                End::Completed(result) => {
                    let from = report.text.len() as u32;
                    let result = result.map(|text| {
                        std::sync::Arc::make_mut(&mut report.text).push_str(&text);
                        (from, report.text.len() as u32)
                    });
                    report.completed.push(Completed { handle, result });
                    continue;
                }
                End::Failed(reason) => Outcome::Failed {
                    reason: Some((*reason).into()),
                    stacktrace: None,
                    unrecoverable: false,
                    delay_ms: None,
                },
                End::Other(outcome) => outcome,
            };
            report.others.push(Ended { handle, outcome });
        }
        if let (RecordedBy::Along { number, command }, Some(carry)) = (self.worker.finish(report), &self.carried) {
            // one whose lane is gone is asked for again
            let _ = carry.send((number, command));
        }
    }
}
