//! Workers of this thread that wait: an add to the queue of one takes its step along, and what the server tells one makes it take a step. The record of how the jobs
//! ended travels as their start did. An add and its handler are one round trip apart, and whoever awaits the add goes on before the job starts.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, Weak},
};

use chasquimq::{
    redis::wire::{Listener, Value},
    worker::{Standby, StepAlong},
};
use napi::Env;

thread_local! {
    /// Workers of this thread, by the number of what they lend.
    static KNOWN: RefCell<BTreeMap<u64, Weak<dyn Idle>>> = const { RefCell::new(BTreeMap::new()) };
}

/// A worker that may wait for jobs.
pub trait Idle: Send + Sync {
    /// What it lends, if it is a worker of this queue, as users see it.
    fn of_queue(&self, queue: &str) -> Option<Standby>;
    /// The same of any queue.
    fn standby(&self) -> Option<Standby>;
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
    pub standby: Standby,
    pub idle: Weak<dyn Idle>,
}

/// A step, and the reply to it, if it was carried out.
pub struct Answered {
    pub number: i64,
    pub standby: Standby,
    pub reply: Option<Value>,
}

impl Along {
    /// It is answered.
    pub fn stepped(self, env: Env, reply: Option<Value>, carrier: Rc<dyn Carrier>) {
        let Some(idle) = self.idle.upgrade() else {
            return self.lost();
        };
        let (number, standby) = (self.number, self.standby);
        idle.stepped(env, Answered { number, standby, reply }, carrier);
    }

    /// It is not known whether it was carried out.
    pub fn lost(&self) {
        self.standby.lose(self.number);
    }
}

/// A worker of this thread waits for jobs from now on.
pub fn remember(standby: &Standby, idle: &Arc<dyn Idle>) {
    KNOWN.with_borrow_mut(|known| {
        known.retain(|_, other| other.strong_count() > 0);
        known.insert(standby.id(), Arc::downgrade(idle));
    });
}

/// The step of a worker that waits for jobs of a queue, in this place (`Watched::place`).
pub fn step_for(queue: &str, place: &str) -> Option<(Along, StepAlong)> {
    KNOWN.with_borrow(|known| {
        known.values().find_map(|idle| {
            let standby = idle.upgrade()?.of_queue(queue)?;
            if !standby.is_at(place) {
                return None;
            }
            let step = standby.step_along()?;
            let along = Along {
                number: step.number,
                standby,
                idle: idle.clone(),
            };
            Some((along, step))
        })
    })
}

/// The server has told a worker of work: it takes a step.
pub fn hear(listener: &dyn Listener, carrier: &dyn Carrier) {
    let idle = KNOWN.with_borrow(|known| known.get(&listener.id()).cloned());
    let standby = idle.as_ref().and_then(Weak::upgrade).and_then(|idle| idle.standby());
    match (idle, standby) {
        (Some(idle), Some(standby)) => {
            if let Some((number, command)) = standby.step_on_news() {
                carrier.carry(Along { number, standby, idle }, &command);
            }
        }
        _ => listener.act(false),
    }
}
