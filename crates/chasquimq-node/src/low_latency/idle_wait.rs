//! A worker's waits on JavaScript's thread, which reads there what became active and runs it. See the engine's `WaitLane`.

use std::{
    os::fd::RawFd,
    rc::Rc,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, Weak,
    },
};

use chasquimq::worker::{Batch, BatchJob, Message, WaitLane};
use napi::{
    bindgen_prelude::{Function, FunctionRef, JsValue, ToNapiValue},
    sys, Env, Result,
};

use crate::{
    connection::units_of,
    low_latency::{
        js_cell::JsCell,
        poll::{call_back, Events, Watch, Watched},
    },
    sink::Sink,
    worker::{to_message, OneJob, WorkerMessage},
};

/// The waits of one worker, and the messages that its jobs must not overtake.
pub struct Waits {
    slot: JsCell<Slot>,
    unread: AtomicUsize,
}

struct Slot {
    watch: Option<Watch>,
    sink: Option<Sink<Message, WorkerMessage>>,
    // let go at the close: they hold on to everything the functions know, this worker included
    functions: Option<(FunctionRef<WorkerMessage, ()>, FunctionRef<OneJob, ()>)>,
}

impl Waits {
    /// `on_message` is what the sink calls, too.
    pub fn new(on_message: &Function<'_, WorkerMessage, ()>, on_job: &Function<'_, OneJob, ()>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            slot: JsCell::new(Slot {
                watch: None,
                sink: None,
                functions: Some((on_message.create_ref()?, on_job.create_ref()?)),
            }),
            unread: AtomicUsize::new(0),
        }))
    }

    /// The way messages take; jobs take it as well while some are under way.
    pub fn use_sink(&self, sink: Sink<Message, WorkerMessage>) {
        self.slot.with(|slot| slot.sink = Some(sink));
    }

    /// A message goes to JavaScript by the sink.
    pub fn sending(&self) {
        self.unread.fetch_add(1, Ordering::AcqRel);
    }

    /// It is there.
    pub fn received(&self) {
        self.unread.fetch_sub(1, Ordering::AcqRel);
    }

    /// Watches a lane instead of the one before. False when that cannot be.
    pub fn watch(self: &Arc<Self>, env: Env, lane: WaitLane) -> bool {
        let watched = Rc::new(WatchedLane {
            lane,
            waits: Arc::downgrade(self),
        });
        self.slot
            .with(|slot| {
                if slot.functions.is_none() {
                    return false;
                }
                if let Some(old) = slot.watch.take() {
                    old.close();
                }
                slot.watch = Watch::open(env, watched);
                slot.watch.is_some()
            })
            .unwrap_or(false)
    }

    /// Watches no more, and runs nothing more.
    pub fn close(&self) {
        self.slot.with(|slot| {
            slot.functions = None;
            slot.sink = None;
            if let Some(watch) = slot.watch.take() {
                watch.close();
            }
        });
    }

    fn run(&self, env: Env, jobs: Batch) {
        if self.unread.load(Ordering::Acquire) > 0 {
            if let Some(Some(sink)) = self.slot.with(|slot| slot.sink.clone()) {
                self.sending();
                sink.send(message_of(jobs));
            }
            return;
        }
        let functions = self.slot.with(|slot| {
            let (on_message, on_job) = slot.functions.as_ref()?;
            Some((
                on_message.borrow_back(&env).ok()?.raw(),
                on_job.borrow_back(&env).ok()?.raw(),
            ))
        });
        let Some(Some((on_message, on_job))) = functions else {
            return;
        };
        // SAFETY: the event loop called, so this is JavaScript's thread, inside a handle scope
        unsafe {
            // a message costs several times what its parts do
            if let ([job], [], []) = (jobs.jobs.as_slice(), jobs.extras.as_slice(), jobs.siblings.as_slice()) {
                if let Ok(arguments) = to_arguments(env, &jobs, job) {
                    call_back(env.raw(), on_job, &arguments);
                    return;
                }
            }
            if let Ok(message) = WorkerMessage::to_napi_value(env.raw(), to_message(message_of(jobs))) {
                call_back(env.raw(), on_message, &[message]);
            }
        }
    }
}

fn message_of(jobs: Batch) -> Message {
    Message {
        jobs: Some(jobs),
        ..Message::default()
    }
}

/// Arguments of [`OneJob`].
/// # Safety
/// On the environment's thread, inside a handle scope.
unsafe fn to_arguments(env: Env, batch: &Batch, job: &BatchJob) -> Result<[sys::napi_value; 8]> {
    let env = env.raw();
    let name = &batch.text[..job.name_len.unwrap_or(0) as usize];
    let options = batch.options.first().map_or("{}", |options| &options.text);
    // SAFETY: the caller's promise
    unsafe {
        Ok([
            u32::to_napi_value(env, batch.base)?,
            f64::to_napi_value(env, batch.processed_on as f64)?,
            f64::to_napi_value(env, batch.claim as f64)?,
            f64::to_napi_value(env, job.number as f64)?,
            u32::to_napi_value(env, units_of(name) as u32)?,
            f64::to_napi_value(env, job.timestamp as f64)?,
            <&str>::to_napi_value(env, &batch.text)?,
            <&str>::to_napi_value(env, options)?,
        ])
    }
}

struct WatchedLane {
    lane: WaitLane,
    waits: Weak<Waits>,
}

impl Watched for WatchedLane {
    fn fd(&self) -> RawFd {
        self.lane.fd()
    }

    fn ready(&self, env: Env, watch: &Watch, _: Events) {
        let waits = self.waits.upgrade();
        let usable = self.lane.ready(|jobs| {
            if let Some(waits) = &waits {
                waits.run(env, jobs);
            }
        });
        if !usable {
            watch.close();
        }
    }
}

// nobody reads what comes any more
impl Drop for WatchedLane {
    fn drop(&mut self) {
        self.lane.close();
    }
}
