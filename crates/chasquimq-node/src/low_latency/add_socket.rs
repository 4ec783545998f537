//! The short way for adds: the command is written to its socket on JavaScript's own thread, which watches the socket for the answer.
//! Measured one add at a time, the two thread changes it saves cost more than Redis itself.
//! A lane that breaks hands everything it was not answered to the engine's connection, which sends it again.

use std::{cell::RefCell, collections::VecDeque, os::fd::RawFd, rc::Rc};

use chasquimq::{
    add::producer::{read_added, Call},
    redis::direct::DirectSocket,
    Added, Error,
};
use napi::Env;

use crate::low_latency::{
    poll::{Events, Watch, Watched},
    spin::Spin,
};

/// Calls and what they were answered.
pub type Answers = Vec<(u32, Call, chasquimq::Result<Added>)>;

/// Whoever owns a lane: told on JavaScript's thread, and free to use or close the lane meanwhile.
pub trait LaneOwner {
    /// Calls were answered.
    fn answered(&self, env: Env, answers: Answers);
    /// The lane is of no use any more, and these calls were not answered.
    fn broken(&self, calls: Vec<(u32, Call)>);
}

/// An open lane. All of it happens on JavaScript's thread.
pub struct Lane {
    watch: Watch,
    calls: Rc<Calls>,
}

/// The calls under way on a socket.
struct Calls {
    fd: RawFd,
    state: RefCell<State>,
    spin: Option<Spin>,
    owner: Rc<dyn LaneOwner>,
}

struct State {
    queue: String,
    socket: DirectSocket,
    waiting: VecDeque<(u32, Call)>,
}

impl Lane {
    /// Puts a socket in the care of this thread's event loop. `None` when the loop cannot take it. `queue` is as users see it.
    pub fn open(env: Env, queue: String, socket: DirectSocket, owner: Rc<dyn LaneOwner>) -> Option<Self> {
        let calls = Rc::new(Calls {
            fd: socket.fd(),
            state: RefCell::new(State {
                queue,
                socket,
                waiting: VecDeque::new(),
            }),
            spin: Spin::open(env),
            owner,
        });
        let Some(watch) = Watch::open(env, calls.clone()) else {
            calls.spin.iter().for_each(Spin::close);
            return None;
        };
        Some(Self { watch, calls })
    }

    /// Sends a call.
    /// # Errors
    /// Every call that was not answered, this one included, when the connection is broken.
    pub fn send(&self, request: u32, call: Call, command: &[u8]) -> Result<(), Vec<(u32, Call)>> {
        let mut state = self.calls.state.borrow_mut();
        state.waiting.push_back((request, call));
        match state.socket.send(command) {
            Ok(true) => {
                self.calls.spin.iter().for_each(Spin::begin);
                Ok(())
            }
            Ok(false) => {
                self.watch.watch(Events {
                    read: true,
                    write: true,
                });
                Ok(())
            }
            Err(_) => Err(state.waiting.drain(..).collect()),
        }
    }

    /// Closes the socket and gives back what was not answered.
    pub fn close(self) -> Vec<(u32, Call)> {
        self.watch.close();
        self.calls.spin.iter().for_each(Spin::close);
        self.calls.state.borrow_mut().waiting.drain(..).collect()
    }
}

impl Watched for Calls {
    fn fd(&self) -> RawFd {
        self.fd
    }

    fn ready(&self, env: Env, watch: &Watch, events: Events) {
        let mut answers = Vec::new();
        let unanswered = {
            let mut state = self.state.borrow_mut();
            let alive = state.turn(watch, events, &mut answers);
            if state.waiting.is_empty() {
                self.spin.iter().for_each(Spin::end);
            }
            (!alive).then(|| state.waiting.drain(..).collect())
        };
        if let Some(unanswered) = unanswered {
            self.owner.broken(unanswered);
        }
        if !answers.is_empty() {
            self.owner.answered(env, answers);
        }
    }
}

impl State {
    /// Sends what is left and reads what came. False when the lane is of no use any more.
    fn turn(&mut self, watch: &Watch, events: Events, answers: &mut Answers) -> bool {
        if events.write {
            match self.socket.flush() {
                Ok(true) => watch.watch(Events {
                    read: true,
                    write: false,
                }),
                Ok(false) => {}
                Err(_) => return false,
            }
        }
        if !events.read {
            return true;
        }
        let mut replies = Vec::new();
        let alive = self.socket.receive(&mut replies).is_ok();
        for reply in replies {
            let Some((request, call)) = self.waiting.pop_front() else {
                return false;
            };
            match reply.and_then(|reply| read_added(reply, &self.queue)) {
                answer @ (Ok(_) | Err(Error::QueueFull { .. })) => answers.push((request, call, answer)),
                // the engine's connection knows what to do about it
                Err(_) => {
                    self.waiting.push_front((request, call));
                    return false;
                }
            }
        }
        alive
    }
}
