//! A worker's waits on JavaScript's thread, which reads there what became active and runs it. See the engine's `WaitLane`.

use std::{
    os::fd::RawFd,
    rc::Rc,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, Weak,
    },
};

use chasquimq::worker::{Batch, Message, WaitLane};
use napi::{
    bindgen_prelude::{Function, FunctionRef, JsValue, ToNapiValue},
    Env, Result,
};

use crate::{
    js_cell::JsCell,
    sink::Sink,
    watch::{call_back, Events, Watch, Watched},
    worker::{to_message, WorkerMessage},
};

/// The waits of one worker, and the messages that its jobs must not overtake.
pub struct Waits {
    slot: JsCell<Slot>,
    unread: AtomicUsize,
}

struct Slot {
    watch: Option<Watch>,
    sink: Option<Sink<Message, WorkerMessage>>,
    // let go at the close: it holds on to everything the function knows, this worker included
    function: Option<FunctionRef<WorkerMessage, ()>>,
}

impl Waits {
    /// `function` is what the sink calls, too.
    pub fn new(function: &Function<'_, WorkerMessage, ()>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            slot: JsCell::new(Slot {
                watch: None,
                sink: None,
                function: Some(function.create_ref()?),
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
                if slot.function.is_none() {
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
            slot.function = None;
            slot.sink = None;
            if let Some(watch) = slot.watch.take() {
                watch.close();
            }
        });
    }

    fn run(&self, env: Env, jobs: Batch) {
        let message = Message {
            jobs: Some(jobs),
            ..Message::default()
        };
        if self.unread.load(Ordering::Acquire) > 0 {
            if let Some(Some(sink)) = self.slot.with(|slot| slot.sink.clone()) {
                self.sending();
                sink.send(message);
            }
            return;
        }
        let function = self.slot.with(|slot| {
            let function = slot.function.as_ref()?.borrow_back(&env).ok()?;
            Some(function.raw())
        });
        if let Some(Some(function)) = function {
            // SAFETY: the event loop called, so this is JavaScript's thread, inside a handle scope
            unsafe {
                if let Ok(message) = WorkerMessage::to_napi_value(env.raw(), to_message(message)) {
                    call_back(env.raw(), function, &[message]);
                }
            }
        }
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
