//! The fast way for jobs: JavaScript's own thread reads there that there is work for a worker, takes a step, and runs what became active. What has completed by then is
//! recorded by the same way. See the engine's `Standby`.

use std::{
    rc::Rc,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, OnceLock, Weak,
    },
};

use chasquimq::{
    redis::wire::Watch,
    worker::{Batch, BatchJob, Message, Standby},
};
use napi::{
    bindgen_prelude::{Function, ToNapiValue},
    sys, Env, Result,
};

use super::{
    along::{remember, Along, Answered, Carrier, Idle},
    callbacks::Callbacks,
    js_cell::JsCell,
    lane::{Answers, Calls, Lane, Seat, User, Wakers},
};
use crate::{
    sink::{OnJsThread, Sink},
    text::units_of,
    worker::{
        job_shortcut::{JobShortcut, ToJs},
        messages::{to_message, OneJob, WorkerMessage},
    },
};

/// What one worker hears by, and the messages that its jobs must not overtake.
pub struct IdleWait {
    // as users see it
    queue: String,
    slot: JsCell<Slot>,
    sink: OnceLock<Sink<ToJs, WorkerMessage>>,
    unread: AtomicUsize,
}

struct Slot {
    standby: Option<Standby>,
    // in the lane of what it hears by
    seat: Option<Seat>,
    // took the start of the jobs that run
    carrier: Option<std::rc::Weak<dyn Carrier>>,
    // let go at the close
    callbacks: Option<Callbacks<WorkerMessage, OneJob>>,
}

impl IdleWait {
    /// `queue` is as users see it; `on_message` is what the sink calls, too.
    pub fn new(
        queue: String,
        on_message: &Function<'_, WorkerMessage, ()>,
        on_job: &Function<'_, OneJob, ()>,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            queue,
            slot: JsCell::new(Slot {
                standby: None,
                seat: None,
                carrier: None,
                callbacks: Some(Callbacks::new(on_message, on_job)?),
            }),
            sink: OnceLock::new(),
            unread: AtomicUsize::new(0),
        }))
    }

    fn tell(&self, env: Env, message: Message) {
        if self.unread.load(Ordering::Acquire) > 0 {
            if let Some(sink) = self.sink.get() {
                self.sending();
                sink.send(ToJs::Tell(Box::new(message)));
            }
            return;
        }
        let callbacks = self.slot.with(|slot| slot.callbacks.as_ref()?.borrow(env));
        let Some(Some(callbacks)) = callbacks else { return };
        // SAFETY: the event loop called, so this is JavaScript's thread, in the handle scope of the poll handle
        unsafe {
            match lone_job(&message) {
                Some((batch, job)) => callbacks.one(to_arguments(env, batch, job)),
                None => callbacks.message(to_message(message)),
            }
        }
    }

    /// Lets go of what the worker heard by.
    fn leave(&self) {
        let seat = self.slot.with(|slot| {
            slot.carrier = None;
            slot.seat.take()
        });
        if let Some(Some(seat)) = seat {
            // a worker makes no calls
            drop(seat.leave());
        }
    }
}

/// A plain job that is all there is to tell.
fn lone_job(message: &Message) -> Option<(&Batch, &BatchJob)> {
    let batch = message.jobs.as_ref()?;
    match (
        batch.jobs.as_slice(),
        batch.extras.as_slice(),
        batch.siblings.as_slice(),
    ) {
        ([job], [], []) => Some((batch, job)),
        _ => None,
    }
}

impl OnJsThread for IdleWait {
    fn on_js_thread(&self, work: Box<dyn FnOnce(Env) + Send>) -> bool {
        self.sink.get().is_some_and(|sink| sink.reaches(ToJs::Run(work)))
    }
}

impl JobShortcut for IdleWait {
    fn use_sink(&self, sink: Sink<ToJs, WorkerMessage>) {
        // once
        let _ = self.sink.set(sink);
    }

    fn sending(&self) {
        self.unread.fetch_add(1, Ordering::AcqRel);
    }

    fn received(&self) {
        self.unread.fetch_sub(1, Ordering::AcqRel);
    }

    fn watch(self: Arc<Self>, env: Env, standby: Standby) {
        self.leave();
        let is_open = self.slot.with(|slot| slot.callbacks.is_some()).unwrap_or(false);
        let wakers = Wakers::default();
        let woken = wakers.clone();
        let lane = match standby.watch(move || woken.wake()).filter(|_| is_open) {
            Some(Watch::Begins(socket)) => Lane::open(env, socket, wakers),
            Some(Watch::Goes(wire)) => Lane::of(wire),
            None => None,
        };
        let Some(lane) = lane else { return };
        let waker: Weak<Self> = Arc::downgrade(&self);
        let listener = Rc::new(Hearer {
            standby: standby.clone(),
        });
        let seat = lane.take_seat(listener, waker);
        self.slot.with(|slot| {
            slot.seat = Some(seat);
            slot.standby = Some(standby.clone());
        });
        let idle: Arc<dyn Idle> = self;
        remember(&standby, &idle);
        standby.watched(true);
    }

    fn carry(self: Arc<Self>, number: i64, command: &[u8]) {
        let found = self
            .slot
            .with(|slot| Some((slot.standby.clone()?, slot.carrier.clone())));
        let Some(Some((standby, carrier))) = found else { return };
        let idle: Weak<Self> = Arc::downgrade(&self);
        let along = Along { number, standby, idle };
        match carrier.and_then(|carrier| carrier.upgrade()) {
            Some(carrier) => carrier.carry(along, command),
            None => along.lost(),
        }
    }

    fn close(&self) {
        self.leave();
        self.slot.with(|slot| {
            slot.callbacks = None;
            slot.standby = None;
        });
    }
}

/// A worker's part in a lane: by that it hears.
struct Hearer {
    standby: Standby,
}

impl User for Hearer {
    fn queue(&self) -> &str {
        ""
    }

    fn answered(&self, _: Env, _: Answers) {}

    fn broken(&self, _: Calls, _: bool) {
        self.standby.watched(false);
    }
}

impl Idle for IdleWait {
    fn of_queue(&self, queue: &str) -> Option<Standby> {
        match self.queue == queue {
            true => self.standby(),
            false => None,
        }
    }

    fn standby(&self) -> Option<Standby> {
        self.slot.with(|slot| slot.standby.clone()).flatten()
    }

    fn stepped(&self, env: Env, answered: Answered, carrier: Rc<dyn Carrier>) {
        let is_open = self.slot.with(|slot| {
            slot.carrier = Some(Rc::downgrade(&carrier));
            slot.callbacks.is_some()
        });
        let Answered { number, standby, reply } = answered;
        match is_open {
            Some(true) => standby.stepped(number, reply, |told| self.tell(env, told.into())),
            // nobody runs what it brings
            _ => standby.lose(number),
        }
    }
}

/// Arguments of [`OneJob`].
/// # Safety
/// On the environment's thread, inside a handle scope.
unsafe fn to_arguments(env: Env, batch: &Batch, job: &BatchJob) -> Result<[sys::napi_value; 9]> {
    let env = env.raw();
    let name = &batch.text[..job.name_len.unwrap_or(0) as usize];
    let options = batch.options.first().map_or("{}", |options| &options.text);
    // SAFETY: the caller's promise
    unsafe {
        Ok([
            u32::to_napi_value(env, batch.base)?,
            u32::to_napi_value(env, batch.offer)?,
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
