//! A socket for adds: written to on JavaScript's own thread, whose event loop polls it for the answers.

use std::cell::RefCell;
use std::{collections::VecDeque, os::fd::RawFd, rc::Rc};

use chasquimq::{
    add::{read_added, Call},
    redis::direct::DirectSocket,
    Added, Error,
};
use napi::Env;

use super::{
    poll::{Events, PollHandle, Polled},
    spin::Spin,
};

/// Calls and what they were answered.
pub type Answers = Vec<(u32, Call, chasquimq::Result<Added>)>;

/// What hears of a socket's calls, on JavaScript's thread; it may use or close the socket meanwhile.
pub trait SocketOwner {
    /// Calls were answered.
    fn answered(&self, env: Env, answers: Answers);
    /// The socket is of no use any more, and these calls were not answered.
    fn broken(&self, calls: Vec<(u32, Call)>);
}

/// An open socket. All of it happens on JavaScript's thread.
pub struct AddSocket {
    poll: PollHandle,
    calls: Rc<Calls>,
}

/// The calls under way on a socket.
struct Calls {
    fd: RawFd,
    state: RefCell<State>,
    spin: Option<Spin>,
    owner: Rc<dyn SocketOwner>,
}

struct State {
    queue: String,
    socket: DirectSocket,
    waiting: VecDeque<(u32, Call)>,
    // what was stored for the first of them, as far as that is answered
    stored: usize,
}

impl AddSocket {
    /// Has this thread's event loop poll a socket. `None` when it cannot. `queue` is as users see it.
    pub fn open(env: Env, queue: String, socket: DirectSocket, owner: Rc<dyn SocketOwner>) -> Option<Self> {
        let calls = Rc::new(Calls {
            fd: socket.fd(),
            state: RefCell::new(State {
                queue,
                socket,
                waiting: VecDeque::new(),
                stored: 0,
            }),
            spin: Spin::open(env),
            owner,
        });
        let Some(poll) = PollHandle::open(env, calls.clone()) else {
            calls.spin.iter().for_each(Spin::close);
            return None;
        };
        Some(Self { poll, calls })
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
                self.poll.poll_for(Events {
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
        self.poll.close();
        self.calls.spin.iter().for_each(Spin::close);
        self.calls.state.borrow_mut().waiting.drain(..).collect()
    }
}

impl Polled for Calls {
    fn fd(&self) -> RawFd {
        self.fd
    }

    fn ready(&self, env: Env, poll: &PollHandle, events: Events) {
        let mut answers = Vec::new();
        let unanswered = {
            let mut state = self.state.borrow_mut();
            let alive = state.exchange(poll, events, &mut answers);
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
    /// Sends what is left and reads what came. False when the socket is of no use any more.
    fn exchange(&mut self, poll: &PollHandle, events: Events, answers: &mut Answers) -> bool {
        if events.write {
            match self.socket.flush() {
                Ok(true) => poll.poll_for(Events {
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
            // where something could not be stored, the call says why
            if self
                .waiting
                .front()
                .is_some_and(|(_, call)| self.stored < call.stashes())
            {
                self.stored += 1;
                continue;
            }
            self.stored = 0;
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
