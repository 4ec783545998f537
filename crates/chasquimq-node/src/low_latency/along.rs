//! Idle workers of this thread: an add to the queue of one takes its step along, and so the record of how that job ended travels. An add and its
//! handler are one round trip apart, and whoever awaits the add goes on before the job starts.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Arc, Weak},
};

use chasquimq::{
    redis::wire::Value,
    worker::{IdleSocket, StepAlong},
};
use napi::Env;

thread_local! {
    /// Workers of this thread.
    static KNOWN: RefCell<Vec<Weak<dyn Idle>>> = const { RefCell::new(Vec::new()) };
}

/// A worker that may wait for jobs.
pub trait Idle: Send + Sync {
    /// The socket by which it waits for jobs of this queue, as users see it, in this place (`Watched::place`).
    fn waits_by(&self, queue: &str, place: &str) -> Option<IdleSocket>;
    /// What was sent along is answered. `carrier` takes how the jobs end.
    fn stepped(&self, env: Env, answered: Answered, carrier: Rc<dyn Carrier>);
}

/// What sends for a worker.
pub trait Carrier {
    /// Sends a command; the worker hears of the answer.
    fn carry(&self, step: Along, command: &[u8]);
}

/// What was sent along, and whose it is.
pub struct Along {
    pub number: i64,
    pub socket: IdleSocket,
    pub idle: Weak<dyn Idle>,
}

/// A step, and the reply to it, if it was carried out.
pub struct Answered {
    pub number: i64,
    pub socket: IdleSocket,
    pub reply: Option<Value>,
}

impl Along {
    /// It is answered.
    pub fn stepped(self, env: Env, reply: Option<Value>, carrier: Rc<dyn Carrier>) {
        let Some(idle) = self.idle.upgrade() else {
            return self.lost();
        };
        let (number, socket) = (self.number, self.socket);
        idle.stepped(env, Answered { number, socket, reply }, carrier);
    }

    /// It is not known whether it was carried out.
    pub fn lost(&self) {
        self.socket.lost(self.number);
    }
}

/// A worker of this thread waits for jobs from now on.
pub fn remember(idle: &Arc<dyn Idle>) {
    KNOWN.with_borrow_mut(|known| {
        known.retain(|other| other.strong_count() > 0 && !Weak::ptr_eq(other, &Arc::downgrade(idle)));
        known.push(Arc::downgrade(idle));
    });
}

/// The step of a worker that waits for jobs of a queue.
pub fn step_for(queue: &str, place: &str) -> Option<(Along, StepAlong)> {
    KNOWN.with_borrow(|known| {
        known.iter().find_map(|idle| {
            let socket = idle.upgrade()?.waits_by(queue, place)?;
            let step = socket.step_along()?;
            let along = Along {
                number: step.number,
                socket,
                idle: idle.clone(),
            };
            Some((along, step))
        })
    })
}
