//! A queue's adds: packed on JavaScript's thread, sent by the engine, answered in batches.

use std::{
    collections::HashMap,
    sync::{
        atomic::{AtomicU64, Ordering},
        Arc, Mutex, Weak,
    },
};

use chasquimq::{add::Call, AddBatch, Added, ConnectionEvent, JobOptions, NewJob, Queue};
use napi::{bindgen_prelude::Function, Env, Result};
use tokio::sync::Notify;

use super::{
    look::LookCall,
    messages::{to_added_message, QueueMessage, Request},
    order::{Order, Turn},
};
use crate::{
    error::Happened,
    runtime::Runtime,
    sink::{OnJsThread, Sink},
    text::{LongText, Pieces},
};

const CACHED_OPTIONS: usize = 256;

/// A faster way for adds than the engine's connection. All of it happens on JavaScript's thread.
pub trait AddShortcut: Send + Sync {
    /// Sends a call, and sees to its answer; gives back what is to go by the engine.
    fn send(&self, adds: &Arc<Adds>, request: Request, call: Call) -> Option<Call>;
    /// Sends a look at a job where the queue is asked nothing else, and sees to its answer; gives back what is to go by the engine.
    fn look(&self, adds: &Arc<Adds>, look: LookCall) -> Option<LookCall>;
    /// Leaves what was not answered to the engine.
    fn close(&self, adds: &Arc<Adds>);
}

/// What a queue tells JavaScript's thread.
pub enum ToJs {
    /// Adds were answered.
    Added,
    /// Something happened to the connection.
    Connection(ConnectionEvent),
    /// Work that only this thread may do.
    Run(Box<dyn FnOnce(Env) + Send>),
    /// The shortcut is to close.
    CloseShortcut,
}

/// The adds of one queue.
pub struct Adds {
    queue: Arc<Queue>,
    sink: Sink<ToJs, QueueMessage>,
    // let go at the close: it holds the engine's files open
    engine: Mutex<Option<tokio::runtime::Handle>>,
    answers: Mutex<Vec<(Request, chasquimq::Result<Added>)>>,
    options: Mutex<HashMap<String, Arc<JobOptions>>>,
    pending: Pending,
    order: Arc<Order>,
    shortcut: Option<Box<dyn AddShortcut>>,
}

/// Calls that were not answered, for which a close waits.
#[derive(Default)]
struct Pending {
    all: AtomicU64,
    none: Notify,
}

impl Pending {
    fn begin(&self) {
        self.all.fetch_add(1, Ordering::AcqRel);
    }

    fn end(&self, count: u64) {
        if self.all.fetch_sub(count, Ordering::AcqRel) == count {
            self.none.notify_waiters();
        }
    }

    async fn wait_for_none(&self) {
        loop {
            let mut none = std::pin::pin!(self.none.notified());
            none.as_mut().enable();
            if self.all.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await;
        }
    }
}

/// A call under way that a close waits for.
pub struct Hold(Arc<Adds>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.pending.end(1);
    }
}

impl OnJsThread for Adds {
    fn on_js_thread(&self, work: Box<dyn FnOnce(Env) + Send>) -> bool {
        self.sink.reaches(ToJs::Run(work))
    }
}

impl Adds {
    /// `make` makes the queue, which reports through the sink.
    pub fn new(
        env: &Env,
        on_message: &Function<'_, QueueMessage, ()>,
        shortcut: Option<Box<dyn AddShortcut>>,
        runtime: &Runtime,
        server: &str,
        make: impl FnOnce(Sink<ToJs, QueueMessage>) -> Queue,
    ) -> Result<Arc<Self>> {
        let env = *env;
        let mut made = Ok(());
        let adds = Arc::new_cyclic(|adds: &Weak<Self>| {
            let weak = adds.clone();
            let sink = Sink::new(on_message, move |message| {
                Ok(weak.upgrade().map(|adds| adds.tell(env, message)).unwrap_or_default())
            });
            let sink = sink.unwrap_or_else(|error| {
                made = Err(error);
                Sink::none()
            });
            Self {
                queue: Arc::new(make(sink.clone())),
                sink,
                engine: Mutex::new(Some(runtime.handle())),
                answers: Mutex::default(),
                options: Mutex::default(),
                pending: Pending::default(),
                order: Arc::new(Order::new(server, runtime.line())),
                shortcut,
            }
        });
        made.map(|()| adds)
    }

    /// The queue.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// The order of its calls.
    pub fn order(&self) -> &Arc<Order> {
        &self.order
    }

    /// How many calls a close waits for.
    pub fn unanswered(&self) -> u64 {
        self.pending.all.load(Ordering::Acquire)
    }

    /// Keeps a close waiting until it is dropped.
    pub fn hold(self: &Arc<Self>) -> Hold {
        self.pending.begin();
        Hold(self.clone())
    }

    /// Adds a job; the answer comes as a message, or as plain values.
    pub fn add_one(self: &Arc<Self>, request: Request, now_ms: u64, name: &str, data: &str, opts: Option<&str>) {
        let batch = self.parse_options(opts.unwrap_or("{}")).map(|options| {
            AddBatch::one(
                now_ms,
                NewJob {
                    name,
                    data,
                    options: &options,
                },
            )
        });
        self.send(request, batch);
    }

    /// Adds jobs; the answer comes as a message.
    pub fn add(self: &Arc<Self>, request: Request, now_ms: u64, text: &LongText, layout: &[u32], opts: &[String]) {
        self.send(request, self.pack(now_ms, text, layout, opts));
    }

    fn send(self: &Arc<Self>, request: Request, batch: chasquimq::Result<AddBatch>) {
        self.pending.begin();
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return self.answer(request, Err(error)),
        };
        let call = self.queue.producer().begin(batch);
        let left = match &self.shortcut {
            Some(shortcut) => shortcut.send(self, request, call),
            None => Some(call),
        };
        if let Some(call) = left {
            // what it needs is stored by commands of its own before it
            let is_ahead = call.stashes() > 0;
            let turn = Turn::begin(self.order.clone(), is_ahead);
            let sent = self.clone().send_by_engine(vec![(request, call, turn)]);
            self.order.give(Box::pin(sent), is_ahead);
        }
    }

    /// Looks at a job.
    pub fn look(self: &Arc<Self>, look: LookCall) {
        let left = match &self.shortcut {
            Some(shortcut) => shortcut.look(self, look),
            None => Some(look),
        };
        if let Some(look) = left {
            look.by_engine();
        }
    }

    fn pack(&self, now_ms: u64, text: &LongText, layout: &[u32], opts: &[String]) -> chasquimq::Result<AddBatch> {
        let options = opts
            .iter()
            .map(|text| self.parse_options(text))
            .collect::<chasquimq::Result<Vec<_>>>()?;
        let mut pieces = Pieces::new(text);
        let jobs = layout.chunks_exact(3).filter_map(|job| {
            let (name, data) = (pieces.next(job[0] as usize), pieces.next(job[1] as usize));
            options
                .get(job[2] as usize)
                .map(|options| NewJob { name, data, options })
        });
        Ok(AddBatch::pack(now_ms, jobs))
    }

    fn parse_options(&self, text: &str) -> chasquimq::Result<Arc<JobOptions>> {
        let Ok(mut known) = self.options.lock() else {
            return JobOptions::parse(text).map(Arc::new);
        };
        if let Some(options) = known.get(text) {
            return Ok(options.clone());
        }
        let options = Arc::new(JobOptions::parse(text)?);
        if !options.are_of_one_job() {
            if known.len() >= CACHED_OPTIONS {
                known.clear();
            }
            known.insert(text.to_owned(), options.clone());
        }
        Ok(options)
    }

    /// Has the engine send what a shortcut was not answered, in the order it was given. Later calls go on waiting for it.
    pub fn take_over(self: &Arc<Self>, calls: Vec<(Request, Call)>) {
        let calls: Vec<_> = calls
            .into_iter()
            .map(|(request, call)| (request, call, Turn::begin(self.order.clone(), true)))
            .collect();
        if !calls.is_empty() {
            drop(self.order.line().give(Box::pin(self.clone().send_by_engine(calls))));
        }
    }

    /// Sends calls one after the other over the engine's connection.
    async fn send_by_engine(self: Arc<Self>, calls: Vec<(Request, Call, Turn)>) {
        for (request, call, turn) in calls {
            let producer = self.queue.producer();
            let added = producer.send(&call).await;
            producer.end(&call, &added);
            drop(turn);
            self.answer(request, added);
        }
    }

    /// Where the engine's tasks run; `None` once closed.
    pub fn engine(&self) -> Option<tokio::runtime::Handle> {
        self.engine.lock().ok().and_then(|engine| engine.clone())
    }

    fn let_engine_go(&self) {
        if let Ok(mut engine) = self.engine.lock() {
            engine.take();
        }
    }

    fn answer(&self, request: Request, added: chasquimq::Result<Added>) {
        let first = self.answers.lock().is_ok_and(|mut answers| {
            answers.push((request, added));
            answers.len() == 1
        });
        // one call takes all answers that are there by then
        if first {
            self.sink.send(ToJs::Added);
        }
        self.pending.end(1);
    }

    /// Notes that a shortcut's calls were answered.
    pub fn answered(&self, count: u64) {
        self.order.answered(count);
        self.pending.end(count);
    }

    /// Waits for calls under way, then closes.
    pub async fn finish(&self) {
        if self.queue.is_connected() {
            self.pending.wait_for_none().await;
            // those that waited for them leave before what follows
            self.order.line().have_begun().await;
            self.queue.forget_calls().await;
        }
        self.queue.close();
        self.sink.send(ToJs::CloseShortcut);
        self.sink.close();
        self.let_engine_go();
    }

    /// Closes at once; on JavaScript's thread.
    pub fn stop(self: &Arc<Self>) {
        self.queue.close();
        self.close_shortcut();
        self.sink.close();
        self.let_engine_go();
    }

    fn close_shortcut(self: &Arc<Self>) {
        if let Some(shortcut) = &self.shortcut {
            shortcut.close(self);
        }
    }

    /// The answers of the engine that JavaScript was not told yet.
    pub fn untold(&self) -> QueueMessage {
        let answers = self.answers.lock().map(|mut answers| std::mem::take(&mut *answers));
        to_added_message(answers.unwrap_or_default())
    }

    fn tell(self: &Arc<Self>, env: Env, message: ToJs) -> QueueMessage {
        let mut told = QueueMessage::default();
        match message {
            ToJs::Added => return self.untold(),
            ToJs::Connection(event) => {
                let happened = Happened::from(event);
                (told.error, told.closed) = (happened.failure, happened.closed);
                (told.eviction, told.foreign_library) = (happened.eviction, happened.foreign_library);
            }
            ToJs::Run(work) => work(env),
            ToJs::CloseShortcut => self.close_shortcut(),
        }
        told
    }
}
