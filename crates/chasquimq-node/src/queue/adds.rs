//! A queue's adds: packed on JavaScript's thread, sent by the lane where there is one, else by the engine, answered in batches.

use std::{
    collections::HashMap,
    rc::Rc,
    sync::{
        atomic::{AtomicU64, Ordering},
        Arc, Mutex, Weak,
    },
};

use chasquimq::{add::producer::Call, AddBatch, Added, ConnectionEvent, JobOptions, NewJob, Queue};
use napi::{
    bindgen_prelude::{FnArgs, Function, FunctionRef, JsValue, ToNapiValue},
    Env, Result,
};
use tokio::sync::Notify;

#[cfg(unix)]
use crate::low_latency::{
    add_socket::{Lane, LaneOwner},
    js_cell::JsCell,
    poll::call_back,
};
use crate::{
    connection::Pieces,
    error::NativeError,
    queue::{NativeAdded, NativeAddedException, QueueMessage},
    sink::Sink,
};

const CACHED_OPTIONS: usize = 1024;

/// What a queue tells JavaScript.
pub enum ToJs {
    Added,
    Connection(ConnectionEvent),
    #[cfg(unix)]
    Direct(Box<chasquimq::redis::direct::DirectSocket>),
    #[cfg(unix)]
    CloseLane,
}

type Answers = Vec<(u32, chasquimq::Result<Added>)>;
/// Request number and first id.
pub type OneAdded = FnArgs<(u32, f64)>;

/// The adds of one queue.
pub struct Adds {
    queue: Arc<Queue>,
    sink: Sink<ToJs, QueueMessage>,
    // let go at the close: it holds the engine's files open
    engine: Mutex<Option<tokio::runtime::Handle>>,
    answers: Mutex<Answers>,
    options: Mutex<HashMap<String, Arc<JobOptions>>>,
    // adds that were not answered, by either way, and by the engine's; a close waits for the first
    pending: Pending,
    #[cfg(unix)]
    lane: JsCell<LaneSlot>,
}

#[derive(Default)]
struct Pending {
    all: AtomicU64,
    engine: AtomicU64,
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

#[cfg(unix)]
struct LaneSlot {
    lane: Option<Lane>,
    wanted: bool,
    // let go at the close: they hold on to everything the functions know, this queue included
    functions: Option<(FunctionRef<QueueMessage, ()>, FunctionRef<OneAdded, ()>)>,
}

/// A call under way that a close waits for.
pub struct Hold(Arc<Adds>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.pending.end(1);
    }
}

impl Adds {
    /// Keeps a close waiting until it is dropped.
    pub fn hold(self: &Arc<Self>) -> Hold {
        self.pending.begin();
        Hold(self.clone())
    }

    /// `make` makes the queue, which reports through the sink.
    pub fn new(
        env: &Env,
        on_message: &Function<'_, QueueMessage, ()>,
        on_added: &Function<'_, OneAdded, ()>,
        engine: tokio::runtime::Handle,
        make: impl FnOnce(Sink<ToJs, QueueMessage>) -> Queue,
    ) -> Result<Arc<Self>> {
        let functions = (on_message.create_ref()?, on_added.create_ref()?);
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
                engine: Mutex::new(Some(engine)),
                answers: Mutex::default(),
                options: Mutex::default(),
                pending: Pending::default(),
                #[cfg(unix)]
                lane: JsCell::new(LaneSlot {
                    lane: None,
                    wanted: true,
                    functions: Some(functions),
                }),
            }
        });
        made.map(|()| adds)
    }

    /// The queue.
    pub fn queue(&self) -> Arc<Queue> {
        self.queue.clone()
    }

    /// Adds a job; the answer comes as a message, or as a call of the second function.
    pub fn add_one(self: &Arc<Self>, request: u32, now_ms: u64, name: &str, data: &str, opts: Option<&str>) {
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
    pub fn add(self: &Arc<Self>, request: u32, now_ms: u64, text: &str, layout: &[u32], opts: &[String]) {
        self.send(request, self.pack(now_ms, text, layout, opts));
    }

    fn send(self: &Arc<Self>, request: u32, batch: chasquimq::Result<AddBatch>) {
        self.pending.begin();
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return self.answer(request, Err(error)),
        };
        let call = self.queue.producer().begin(batch);
        if let Some(call) = self.send_by_lane(request, call) {
            self.send_by_engine(vec![(request, call)]);
        }
    }

    fn pack(&self, now_ms: u64, text: &str, layout: &[u32], opts: &[String]) -> chasquimq::Result<AddBatch> {
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
        if options.job_id.is_none() && options.deduplication.is_none() {
            if known.len() >= CACHED_OPTIONS {
                known.clear();
            }
            known.insert(text.to_owned(), options.clone());
        }
        Ok(options)
    }

    /// Sends calls one after the other over the engine's connection, in the order they were made.
    fn send_by_engine(self: &Arc<Self>, calls: Vec<(u32, Call)>) {
        let count = calls.len() as u64;
        self.pending.engine.fetch_add(count, Ordering::AcqRel);
        let adds = self.clone();
        let Some(engine) = self.engine() else {
            // closed: nobody waits for these any more
            self.pending.engine.fetch_sub(count, Ordering::AcqRel);
            self.pending.end(count);
            return;
        };
        engine.spawn(async move {
            for (request, call) in calls {
                let producer = adds.queue.producer();
                let added = producer.send(&call).await;
                producer.end(&call, &added);
                adds.pending.engine.fetch_sub(1, Ordering::AcqRel);
                adds.answer(request, added);
            }
        });
    }

    fn engine(&self) -> Option<tokio::runtime::Handle> {
        self.engine.lock().ok().and_then(|engine| engine.clone())
    }

    fn let_engine_go(&self) {
        if let Ok(mut engine) = self.engine.lock() {
            engine.take();
        }
    }

    fn answer(&self, request: u32, added: chasquimq::Result<Added>) {
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

    /// Waits for adds under way, then closes.
    pub async fn finish(&self) {
        if self.queue.is_connected() {
            self.pending.wait_for_none().await;
            self.queue.forget_adds().await;
        }
        self.queue.close();
        #[cfg(unix)]
        self.sink.send(ToJs::CloseLane);
        self.sink.close();
        self.let_engine_go();
    }

    /// Closes at once; on JavaScript's thread.
    pub fn stop(self: &Arc<Self>) {
        self.queue.close();
        #[cfg(unix)]
        self.close_lane();
        self.sink.close();
        self.let_engine_go();
    }

    fn tell(self: &Arc<Self>, env: Env, message: ToJs) -> QueueMessage {
        match message {
            ToJs::Added => {
                let answers = self.answers.lock().map(|mut answers| std::mem::take(&mut *answers));
                to_added_message(answers.unwrap_or_default())
            }
            ToJs::Connection(ConnectionEvent::Failed(error)) => QueueMessage {
                error: Some(NativeError::from(&error)),
                ..QueueMessage::default()
            },
            ToJs::Connection(ConnectionEvent::Lost) => QueueMessage {
                closed: Some(true),
                ..QueueMessage::default()
            },
            ToJs::Connection(ConnectionEvent::Evicts(policy)) => QueueMessage {
                eviction: Some(policy),
                ..QueueMessage::default()
            },
            #[cfg(unix)]
            ToJs::Direct(socket) => {
                self.take_lane(env, *socket);
                QueueMessage::default()
            }
            #[cfg(unix)]
            ToJs::CloseLane => {
                self.close_lane();
                QueueMessage::default()
            }
        }
    }
}

#[cfg(not(unix))]
impl Adds {
    fn send_by_lane(self: &Arc<Self>, _request: u32, call: Call) -> Option<Call> {
        Some(call)
    }
}

#[cfg(unix)]
impl Adds {
    /// Sends a call by the lane; gives it back if there is no lane, or adds before it are still under way in the engine.
    fn send_by_lane(self: &Arc<Self>, request: u32, call: Call) -> Option<Call> {
        let engine_is_busy = self.pending.engine.load(Ordering::Acquire) > 0;
        let mut call = Some(call);
        let failed = self.lane.with(|slot| {
            let Some(lane) = &slot.lane else {
                if std::mem::take(&mut slot.wanted) {
                    self.open_lane();
                }
                return Ok(());
            };
            if engine_is_busy {
                return Ok(());
            }
            match call.take() {
                Some(call) => {
                    let command = self.queue.producer().command(&call);
                    lane.send(request, call, &command)
                }
                None => Ok(()),
            }
        });
        if let Some(Err(calls)) = failed {
            self.lose_lane(calls);
        }
        call
    }

    fn open_lane(self: &Arc<Self>) {
        let adds = self.clone();
        let Some(engine) = self.engine() else { return };
        engine.spawn(async move {
            // without a lane, adds go by the engine; its connection reports what is wrong
            if let Ok(Some(socket)) = adds.queue.open_direct().await {
                adds.sink.send(ToJs::Direct(Box::new(socket)));
            }
        });
    }

    fn take_lane(self: &Arc<Self>, env: Env, socket: chasquimq::redis::direct::DirectSocket) {
        if self.queue.is_closed() {
            return;
        }
        let owner = Rc::new(Owner(Arc::downgrade(self)));
        let lane = Lane::open(env, self.queue.keys().qualified_name.clone(), socket, owner);
        self.lane.with(|slot| slot.lane = lane);
    }

    fn close_lane(self: &Arc<Self>) {
        let lane = self.lane.with(|slot| {
            slot.wanted = false;
            slot.functions = None;
            slot.lane.take()
        });
        if let Some(Some(lane)) = lane {
            let calls = lane.close();
            if !calls.is_empty() {
                self.send_by_engine(calls);
            }
        }
    }

    /// The lane broke: what it was asked goes by the engine, and the next add asks for another.
    fn lose_lane(self: &Arc<Self>, calls: Vec<(u32, Call)>) {
        let lane = self.lane.with(|slot| {
            slot.wanted = true;
            slot.lane.take()
        });
        if let Some(Some(lane)) = lane {
            lane.close();
        }
        if !calls.is_empty() {
            self.send_by_engine(calls);
        }
    }
}

#[cfg(unix)]
struct Owner(Weak<Adds>);

#[cfg(unix)]
impl LaneOwner for Owner {
    fn answered(&self, env: Env, answers: crate::low_latency::add_socket::Answers) {
        let Some(adds) = self.0.upgrade() else { return };
        let count = answers.len() as u64;
        let answers: Answers = answers
            .into_iter()
            .map(|(request, call, added)| {
                adds.queue.producer().end(&call, &added);
                (request, added)
            })
            .collect();
        adds.pending.end(count);
        let functions = adds.lane.with(|slot| {
            let (on_message, on_added) = slot.functions.as_ref()?;
            Some((
                on_message.borrow_back(&env).ok()?.raw(),
                on_added.borrow_back(&env).ok()?.raw(),
            ))
        });
        let Some(Some((on_message, on_added))) = functions else {
            return;
        };
        // SAFETY: libuv called, so this is JavaScript's thread; the lane opened a handle scope
        unsafe {
            // a message costs several times what numbers do
            if let [(request, Ok(Added { first, exceptions }))] = answers.as_slice() {
                if exceptions.is_empty() {
                    let arguments = [
                        u32::to_napi_value(env.raw(), *request),
                        f64::to_napi_value(env.raw(), *first as f64),
                    ];
                    if let [Ok(request), Ok(first)] = arguments {
                        call_back(env.raw(), on_added, &[request, first]);
                    }
                    return;
                }
            }
            if let Ok(message) = QueueMessage::to_napi_value(env.raw(), to_added_message(answers)) {
                call_back(env.raw(), on_message, &[message]);
            }
        }
    }

    fn broken(&self, calls: Vec<(u32, Call)>) {
        if let Some(adds) = self.0.upgrade() {
            adds.lose_lane(calls);
        }
    }
}

fn to_added_message(answers: Answers) -> QueueMessage {
    let added = answers.into_iter().map(|(request, added)| to_added(request, added));
    QueueMessage {
        added: Some(added.collect()),
        ..QueueMessage::default()
    }
}

fn to_added(request: u32, added: chasquimq::Result<Added>) -> NativeAdded {
    match added {
        Ok(added) => NativeAdded {
            request,
            first: added.first as f64,
            exceptions: (!added.exceptions.is_empty()).then(|| {
                let exceptions = added.exceptions.into_iter();
                exceptions
                    .map(|(index, id)| NativeAddedException {
                        index: index as u32,
                        id: Some(id),
                        error: None,
                    })
                    .collect()
            }),
            error: None,
        },
        Err(error) => NativeAdded {
            request,
            first: 0.0,
            exceptions: None,
            error: Some(NativeError::from(&error)),
        },
    }
}
