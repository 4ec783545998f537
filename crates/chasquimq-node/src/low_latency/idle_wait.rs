//! The fast way for jobs: JavaScript's own thread reads there what became active for an idle worker, and runs it. What has completed by then is
//! recorded by the same way. See the engine's `IdleSocket`.

use std::{
    cell::Cell,
    os::fd::RawFd,
    rc::Rc,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, Weak,
    },
    time::{Duration, Instant},
};

use chasquimq::worker::{Batch, BatchJob, IdleSocket, Message};
use napi::{
    bindgen_prelude::{Function, ToNapiValue},
    sys, Env, Result,
};

use super::{
    along::{remember, Along, Answered, Carrier, Idle},
    callbacks::Callbacks,
    js_cell::JsCell,
    lane::read_answers,
    poll::{is_readable, PollHandle, Polled},
    spin::Spin,
};
use crate::{
    sink::Sink,
    text::units_of,
    worker::{
        job_shortcut::JobShortcut,
        messages::{to_message, OneJob, WorkerMessage},
    },
};

/// Answers that a server sends at the same time are there within it.
const LONGEST_LEFT: Duration = Duration::from_micros(200);

/// The wait of one worker, and the messages that its jobs must not overtake.
pub struct IdleWait {
    // as users see it
    queue: String,
    slot: JsCell<Slot>,
    unread: AtomicUsize,
}

struct Slot {
    poll: Option<PollHandle>,
    spin: Option<Rc<Spin>>,
    socket: Option<IdleSocket>,
    // took the start of the jobs that run along
    carrier: Option<std::rc::Weak<dyn Carrier>>,
    sink: Option<Sink<Message, WorkerMessage>>,
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
                poll: None,
                spin: None,
                socket: None,
                carrier: None,
                sink: None,
                callbacks: Some(Callbacks::new(on_message, on_job)?),
            }),
            unread: AtomicUsize::new(0),
        }))
    }

    fn tell(&self, env: Env, message: Message) {
        if self.unread.load(Ordering::Acquire) > 0 {
            if let Some(Some(sink)) = self.slot.with(|slot| slot.sink.clone()) {
                self.sending();
                sink.send(message);
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
}

impl Slot {
    fn watch_no_more(&mut self) {
        if let Some(poll) = self.poll.take() {
            poll.close();
        }
        self.spin = None;
        self.socket = None;
        self.carrier = None;
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

impl JobShortcut for IdleWait {
    fn use_sink(&self, sink: Sink<Message, WorkerMessage>) {
        self.slot.with(|slot| slot.sink = Some(sink));
    }

    fn sending(&self) {
        self.unread.fetch_add(1, Ordering::AcqRel);
    }

    fn received(&self) {
        self.unread.fetch_sub(1, Ordering::AcqRel);
    }

    fn watch(self: Arc<Self>, env: Env, socket: IdleSocket) -> bool {
        let spin = Spin::open(env).map(Rc::new);
        let polled = Rc::new(PolledSocket {
            socket: socket.clone(),
            spin: spin.clone(),
            wait: Arc::downgrade(&self),
            left: Cell::new(None),
        });
        let is_watched = self
            .slot
            .with(|slot| {
                if slot.callbacks.is_none() {
                    return false;
                }
                slot.watch_no_more();
                slot.poll = PollHandle::open(env, polled);
                slot.spin = spin.filter(|_| slot.poll.is_some());
                slot.socket = slot.poll.is_some().then_some(socket);
                slot.poll.is_some()
            })
            .unwrap_or(false);
        if is_watched {
            let idle: Arc<dyn Idle> = self;
            remember(&idle);
        }
        is_watched
    }

    fn recording(&self) {
        self.slot.with(|slot| slot.spin.iter().for_each(|spin| spin.begin()));
    }

    fn carry(self: Arc<Self>, socket: IdleSocket, number: i64, command: &[u8]) {
        let carrier = self.slot.with(|slot| slot.carrier.as_ref()?.upgrade()).flatten();
        let idle: Weak<Self> = Arc::downgrade(&self);
        let along = Along { number, socket, idle };
        match carrier {
            Some(carrier) => carrier.carry(along, command),
            None => along.lost(),
        }
    }

    fn close(&self) {
        self.slot.with(|slot| {
            slot.callbacks = None;
            slot.sink = None;
            slot.watch_no_more();
        });
    }
}

impl Idle for IdleWait {
    fn waits_by(&self, queue: &str, place: &str) -> Option<IdleSocket> {
        if self.queue != queue {
            return None;
        }
        let socket = self.slot.with(|slot| slot.socket.clone()).flatten()?;
        if socket.place() != place {
            return None;
        }
        socket.add_comes();
        // an end of the wait that was not read yet may bring jobs
        (socket.is_idle() && !is_readable(socket.fd())).then_some(socket)
    }

    fn stepped(&self, env: Env, answered: Answered, carrier: Rc<dyn Carrier>) {
        let is_open = self.slot.with(|slot| {
            slot.carrier = Some(Rc::downgrade(&carrier));
            slot.callbacks.is_some()
        });
        let Answered { number, socket, reply } = answered;
        match is_open {
            Some(true) => socket.stepped(number, reply, |told| self.tell(env, told.into())),
            // nobody runs what it brings
            _ => socket.lost(number),
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

struct PolledSocket {
    socket: IdleSocket,
    // awake until it is told that what ended is recorded
    spin: Option<Rc<Spin>>,
    wait: Weak<IdleWait>,
    // what came is left there while adds of its queue have no answer
    left: Cell<Option<Instant>>,
}

impl PolledSocket {
    /// Whether what came stays there until the loop's next turn.
    fn is_left(&self, env: Env, wait: &IdleWait) -> bool {
        let left = self.left.take();
        if read_answers(env, &wait.queue) || left.is_some_and(|since| since.elapsed() >= LONGEST_LEFT) {
            return false;
        }
        self.left.set(left.or_else(|| Some(Instant::now())));
        // this thread may run on the server's core, which has yet to send the answer
        std::thread::yield_now();
        true
    }
}

impl Polled for PolledSocket {
    fn fd(&self) -> RawFd {
        self.socket.fd()
    }

    fn ready(&self, env: Env, poll: &PollHandle) {
        let wait = self.wait.upgrade();
        // who goes on may close the worker
        if wait.as_ref().is_some_and(|wait| self.is_left(env, wait)) || !poll.is_open() {
            return;
        }
        self.spin.iter().for_each(|spin| spin.end());
        let usable = self.socket.ready(|told| {
            if let Some(wait) = &wait {
                wait.tell(env, told.into());
            }
        });
        if !usable {
            poll.close();
        }
    }
}

// nobody reads what comes any more
impl Drop for PolledSocket {
    fn drop(&mut self) {
        self.socket.close();
        self.spin.iter().for_each(|spin| spin.close());
    }
}
