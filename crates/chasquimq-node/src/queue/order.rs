//! Keeps what a queue is asked in the order of the calls. Adds may take a shortcut; all else goes by the engine, where calls begin in the
//! order in which they are given. What is given behind adds on the shortcut waits here until they are answered.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::runtime::{Call, Line};

/// The calls of one queue.
pub struct Order {
    line: Line,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // calls by the engine that have no answer, those that wait included
    by_engine: u64,
    // adds that later calls wait for: how many were given, and answered. They are answered in their order.
    ahead: u64,
    answered: u64,
    // each behind that many of them
    waiting: VecDeque<(u64, Call)>,
}

impl Order {
    /// `line` leads to the engine.
    pub fn new(line: Line) -> Self {
        Self {
            line,
            state: Mutex::default(),
        }
    }

    /// Where the engine's calls begin.
    pub fn line(&self) -> &Line {
        &self.line
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the engine has calls without an answer, which an add on the shortcut would overtake.
    pub fn is_engine_busy(&self) -> bool {
        self.state().by_engine > 0
    }

    /// An add goes to where later calls do not follow it: they wait for [`Order::answered`].
    pub fn begin_ahead(&self) {
        self.state().ahead += 1;
    }

    /// So many of these adds were answered, or never will be.
    pub fn answered(&self, count: u64) {
        self.end(0, count);
    }

    /// Has the engine begin a call, behind all that was given before.
    /// The caller holds a [`Turn`] for it; `is_ahead` when later calls wait for that one.
    pub fn give(&self, call: Call, is_ahead: bool) {
        let unsent = {
            let mut state = self.state();
            let behind = state.ahead;
            state.ahead += u64::from(is_ahead);
            if behind == state.answered && state.waiting.is_empty() {
                // under the lock, as nothing must come between
                self.line.give(call)
            } else {
                state.waiting.push_back((behind, call));
                None
            }
        };
        // it may hold turns, whose end takes the lock
        drop(unsent);
    }

    fn end(&self, by_engine: u64, ahead: u64) {
        let mut unsent = Vec::new();
        let mut state = self.state();
        state.by_engine -= by_engine;
        state.answered += ahead;
        while state
            .waiting
            .front()
            .is_some_and(|(behind, _)| *behind <= state.answered)
        {
            if let Some((_, call)) = state.waiting.pop_front() {
                unsent.extend(self.line.give(call));
            }
        }
        drop(state);
        drop(unsent);
    }
}

/// What has an order of calls, and the sockets for whose answers they may wait.
pub trait Ordered: Send + Sync {
    /// The order of its calls.
    fn order(&self) -> &Order;
}

/// A call by the engine, until it is answered or dropped. It keeps the queue's sockets open.
pub struct Turn {
    of: Arc<dyn Ordered>,
    is_ahead: bool,
}

impl Turn {
    /// `is_ahead` when later calls wait for its end.
    pub fn begin(of: Arc<dyn Ordered>, is_ahead: bool) -> Self {
        of.order().state().by_engine += 1;
        Self { of, is_ahead }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.of.order().end(1, u64::from(self.is_ahead));
    }
}
