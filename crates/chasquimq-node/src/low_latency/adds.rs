//! The fast way for adds: the command is written to the lane on JavaScript's own thread. A lane that breaks leaves everything that
//! it was not answered to the plain way, which sends it again.

use std::{
    rc::Rc,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use chasquimq::{
    add::{Call, Producer},
    redis::wire::Watch,
    Added,
};
use napi::{
    bindgen_prelude::{Function, ToNapiValue},
    Env,
};

use super::{
    callbacks::Callbacks,
    js_cell::JsCell,
    lane::{Answers, Calls, Lane, Seat, User, Wakers},
    look::SentLook,
};
use crate::{
    queue::{
        adds::{AddShortcut, Adds},
        look::LookCall,
        messages::{to_added_message, OneAdded, QueueMessage, Request},
    },
    sink::OnJsThread,
};

/// How long adds go the plain way where the server refuses them.
const PAUSE: Duration = Duration::from_secs(1);
/// The same while a lane is being opened.
const OPENING: Duration = Duration::from_millis(10);

/// A queue's seat in the lane of its adds, once it has one.
pub struct FastAdds(Arc<JsCell<Slot>>);

struct Slot {
    seat: Option<Seat>,
    // from when on an add asks for one
    wanted: Option<Instant>,
    // let go at the close
    callbacks: Option<Callbacks<QueueMessage, OneAdded>>,
}

impl Slot {
    fn ask_again(&mut self, pause: Duration) {
        // else it is closed
        if self.callbacks.is_some() {
            self.wanted = Some(Instant::now() + pause);
        }
    }
}

impl FastAdds {
    /// No seat yet: the first add asks for it.
    pub fn new(
        on_message: &Function<'_, QueueMessage, ()>,
        on_added: &Function<'_, OneAdded, ()>,
    ) -> napi::Result<Self> {
        Ok(Self(Arc::new(JsCell::new(Slot {
            seat: None,
            wanted: Some(Instant::now()),
            callbacks: Some(Callbacks::new(on_message, on_added)?),
        }))))
    }
}

impl AddShortcut for FastAdds {
    fn send(&self, adds: &Arc<Adds>, request: Request, call: Call) -> Option<Call> {
        let mut call = Some(call);
        let failed = self.0.with(|slot| {
            let Some(seat) = &slot.seat else {
                if slot.wanted.take_if(|from| *from <= Instant::now()).is_some() {
                    ask_for_seat(&self.0, adds);
                }
                return Ok(());
            };
            // what went the plain way before must not be overtaken
            if adds.order().is_engine_busy() {
                return Ok(());
            }
            match call.take() {
                Some(call) => {
                    adds.order().begin_ahead();
                    send_call(seat, adds.queue().producer(), request, call)
                }
                None => Ok(()),
            }
        });
        if let Some(Err(calls)) = failed {
            lose_seat(&self.0, adds, calls, Duration::ZERO);
        }
        call
    }

    fn look(&self, adds: &Arc<Adds>, look: LookCall) -> Option<LookCall> {
        let mut look = Some(look);
        let failed = self.0.with(|slot| {
            // of many at once the engine makes one command
            let idle = slot.seat.as_ref().filter(|seat| seat.is_idle())?;
            if adds.order().is_engine_busy() {
                return None;
            }
            idle.look(SentLook::new(look.take()?)).err()
        });
        if let Some(Some(calls)) = failed {
            lose_seat(&self.0, adds, calls, Duration::ZERO);
        }
        look
    }

    fn close(&self, adds: &Arc<Adds>) {
        let seat = self.0.with(|slot| {
            slot.wanted = None;
            slot.callbacks = None;
            slot.seat.take()
        });
        if let Some(Some(seat)) = seat {
            adds.take_over(seat.leave());
        }
    }
}

/// Sends a call; with it the step of a worker of this thread that waits for the job.
fn send_call(seat: &Seat, producer: &Producer, request: Request, call: Call) -> Result<(), Calls> {
    let step = (call.starts_at_once() && producer.takes_steps()).then(|| seat.step_for_job());
    match step.flatten() {
        Some((along, step)) => {
            let command = producer.command_with_step(&call, &step);
            seat.send(request, call, Some(along), |_| command.into())
        }
        None => seat.send(request, call, None, |call| producer.commands(call)),
    }
}

fn ask_for_seat(slot: &Arc<JsCell<Slot>>, adds: &Arc<Adds>) {
    let (slot, adds) = (Arc::downgrade(slot), adds.clone());
    let Some(engine) = adds.engine() else { return };
    engine.spawn(async move {
        let (weak, wakers) = (Arc::downgrade(&adds), Wakers::default());
        let woken = wakers.clone();
        // one that is closed needs none, and its connection tells what is wrong
        if let Ok(Some(watch)) = adds.queue().watch(move || woken.wake()).await {
            adds.on_js_thread(Box::new(move |env| {
                let lane = match watch {
                    Watch::Begins(socket) => Lane::open(env, socket, wakers),
                    Watch::Goes(wire) => {
                        let lane = Lane::of(wire);
                        if lane.is_none() {
                            ask_later(&slot, OPENING);
                        }
                        lane
                    }
                };
                if let Some(lane) = lane {
                    take_seat(lane, slot, weak);
                }
            }));
        }
    });
}

fn ask_later(slot: &Weak<JsCell<Slot>>, pause: Duration) {
    if let Some(cell) = slot.upgrade() {
        cell.with(|slot| slot.ask_again(pause));
    }
}

fn take_seat(lane: Rc<Lane>, slot: Weak<JsCell<Slot>>, adds: Weak<Adds>) {
    let (Some(cell), Some(open)) = (slot.upgrade(), adds.upgrade()) else {
        return lane.close_unused();
    };
    if open.queue().is_closed() {
        return lane.close_unused();
    }
    let queue = open.queue().keys().qualified_name.clone();
    let seat = lane.take_seat(
        Rc::new(Sender {
            queue,
            slot,
            adds: adds.clone(),
        }),
        adds,
    );
    cell.with(|slot| slot.seat = Some(seat));
}

/// The lane broke: what it was asked goes the plain way, and an add after the pause asks for another.
fn lose_seat(slot: &JsCell<Slot>, adds: &Arc<Adds>, calls: Calls, pause: Duration) {
    let seat = slot.with(|slot| {
        slot.ask_again(pause);
        slot.seat.take()
    });
    if let Some(Some(seat)) = seat {
        seat.leave();
    }
    adds.take_over(calls);
}

struct Sender {
    queue: String,
    slot: Weak<JsCell<Slot>>,
    adds: Weak<Adds>,
}

impl User for Sender {
    fn queue(&self) -> &str {
        &self.queue
    }

    fn answered(&self, env: Env, answers: Answers) {
        let (Some(slot), Some(adds)) = (self.slot.upgrade(), self.adds.upgrade()) else {
            return;
        };
        let mut answered = Vec::with_capacity(answers.len());
        for (request, call, added) in answers {
            adds.queue().producer().end(&call, &added);
            answered.push((request, added));
        }
        adds.answered(answered.len() as u64);
        let callbacks = slot.with(|slot| slot.callbacks.as_ref()?.borrow(env));
        let Some(Some(callbacks)) = callbacks else { return };
        // SAFETY: libuv called, so this is JavaScript's thread, in the handle scope of the poll handle
        unsafe {
            match answered.as_slice() {
                [(request, Ok(Added { first, exceptions }))] if exceptions.is_empty() => {
                    callbacks.one(to_arguments(env, *request, *first));
                }
                _ => callbacks.message(to_added_message(answered)),
            }
        }
    }

    fn broken(&self, calls: Calls, is_refused: bool) {
        if let (Some(slot), Some(adds)) = (self.slot.upgrade(), self.adds.upgrade()) {
            lose_seat(&slot, &adds, calls, if is_refused { PAUSE } else { Duration::ZERO });
        }
    }
}

/// Arguments of [`OneAdded`].
/// # Safety
/// On the environment's thread, inside a handle scope.
unsafe fn to_arguments(env: Env, request: Request, first: u64) -> napi::Result<[napi::sys::napi_value; 2]> {
    // SAFETY: the caller's promise
    unsafe {
        Ok([
            Request::to_napi_value(env.raw(), request)?,
            f64::to_napi_value(env.raw(), first as f64)?,
        ])
    }
}
