//! The fast way for adds: the command is written to its socket on JavaScript's own thread. A socket that breaks leaves everything that
//! it was not answered to the plain way, which sends it again.

use std::{
    rc::Rc,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use chasquimq::{
    add::{Call, Producer},
    redis::wire::Watched,
    Added,
};
use napi::{
    bindgen_prelude::{Function, ToNapiValue},
    Env,
};

use super::{
    add_socket::{AddSocket, Answers, SocketOwner},
    callbacks::Callbacks,
    js_cell::JsCell,
    look::SentLook,
};
use crate::queue::{
    adds::{AddShortcut, Adds},
    look::LookCall,
    messages::{to_added_message, OneAdded, QueueMessage, Request},
};

/// How long adds go the plain way where the server refuses them.
const PAUSE: Duration = Duration::from_secs(1);

/// The socket of a queue's adds, once there is one.
pub struct FastAdds(Arc<JsCell<Slot>>);

struct Slot {
    socket: Option<AddSocket>,
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
    /// No socket yet: the first add asks for it.
    pub fn new(
        on_message: &Function<'_, QueueMessage, ()>,
        on_added: &Function<'_, OneAdded, ()>,
    ) -> napi::Result<Self> {
        Ok(Self(Arc::new(JsCell::new(Slot {
            socket: None,
            wanted: Some(Instant::now()),
            callbacks: Some(Callbacks::new(on_message, on_added)?),
        }))))
    }
}

impl AddShortcut for FastAdds {
    fn send(&self, adds: &Arc<Adds>, request: Request, call: Call) -> Option<Call> {
        let mut call = Some(call);
        let failed = self.0.with(|slot| {
            let Some(socket) = &slot.socket else {
                if slot.wanted.take_if(|from| *from <= Instant::now()).is_some() {
                    ask_for_socket(&self.0, adds);
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
                    send_call(socket, adds.queue().producer(), request, call)
                }
                None => Ok(()),
            }
        });
        if let Some(Err(calls)) = failed {
            lose_socket(&self.0, adds, calls, Duration::ZERO);
        }
        call
    }

    fn look(&self, adds: &Arc<Adds>, look: LookCall) -> Option<LookCall> {
        let mut look = Some(look);
        let failed = self.0.with(|slot| {
            // of many at once the engine makes one command
            let idle = slot.socket.as_ref().filter(|socket| socket.is_idle())?;
            if adds.order().is_engine_busy() {
                return None;
            }
            idle.look(SentLook::new(look.take()?)).err()
        });
        if let Some(Some(calls)) = failed {
            lose_socket(&self.0, adds, calls, Duration::ZERO);
        }
        look
    }

    fn close(&self, adds: &Arc<Adds>) {
        let socket = self.0.with(|slot| {
            slot.wanted = None;
            slot.callbacks = None;
            slot.socket.take()
        });
        if let Some(Some(socket)) = socket {
            adds.take_over(socket.close());
        }
    }
}

/// Sends a call; with it the step of a worker of this thread that waits for the job.
fn send_call(
    socket: &AddSocket,
    producer: &Producer,
    request: Request,
    call: Call,
) -> Result<(), Vec<(Request, Call)>> {
    let step = (call.starts_at_once() && producer.takes_steps()).then(|| socket.step_for_job());
    match step.flatten() {
        Some((along, step)) => {
            let command = producer.command_with_step(&call, &step);
            socket.send(request, call, Some(along), |_| command.into())
        }
        None => socket.send(request, call, None, |call| producer.commands(call)),
    }
}

fn ask_for_socket(slot: &Arc<JsCell<Slot>>, adds: &Arc<Adds>) {
    let (slot, adds) = (Arc::downgrade(slot), adds.clone());
    let Some(engine) = adds.engine() else { return };
    engine.spawn(async move {
        let weak = Arc::downgrade(&adds);
        let (reads, of_slot) = (weak.clone(), slot.clone());
        let wake = move || {
            let slot = of_slot.clone();
            if let Some(adds) = reads.upgrade() {
                adds.on_js_thread(Box::new(move |env| take_answers(env, &slot)));
            }
        };
        // one that is closed needs none, and its connection tells what is wrong
        if let Ok(Some(socket)) = adds.queue().watch(wake).await {
            adds.on_js_thread(Box::new(move |env| take_socket(env, slot, weak, socket)));
        }
    });
}

/// The engine has read answers, behind one of its own.
fn take_answers(env: Env, slot: &Weak<JsCell<Slot>>) {
    let reader = slot
        .upgrade()
        .and_then(|cell| cell.with(|slot| slot.socket.as_ref().map(AddSocket::reader)));
    if let Some(Some(read)) = reader {
        read(env);
    }
}

fn take_socket(env: Env, slot: Weak<JsCell<Slot>>, adds: Weak<Adds>, socket: Watched) {
    let (Some(cell), Some(open)) = (slot.upgrade(), adds.upgrade()) else {
        return;
    };
    if open.queue().is_closed() {
        return;
    }
    let queue = open.queue().keys().qualified_name.clone();
    let socket = AddSocket::open(env, queue, socket, Rc::new(Owner { slot, adds }));
    cell.with(|slot| slot.socket = socket);
}

/// The socket broke: what it was asked goes the plain way, and an add after the pause asks for another.
fn lose_socket(slot: &JsCell<Slot>, adds: &Arc<Adds>, calls: Vec<(Request, Call)>, pause: Duration) {
    let socket = slot.with(|slot| {
        slot.ask_again(pause);
        slot.socket.take()
    });
    if let Some(Some(socket)) = socket {
        socket.close();
    }
    adds.take_over(calls);
}

struct Owner {
    slot: Weak<JsCell<Slot>>,
    adds: Weak<Adds>,
}

impl SocketOwner for Owner {
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

    fn broken(&self, calls: Vec<(Request, Call)>, is_refused: bool) {
        if let (Some(slot), Some(adds)) = (self.slot.upgrade(), self.adds.upgrade()) {
            lose_socket(&slot, &adds, calls, if is_refused { PAUSE } else { Duration::ZERO });
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
