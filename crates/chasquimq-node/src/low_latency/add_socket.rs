//! A socket for adds: written to on JavaScript's own thread, whose event loop polls it for the answers.

use std::{
    cell::RefCell,
    collections::VecDeque,
    os::fd::RawFd,
    rc::{Rc, Weak},
};

use chasquimq::{
    add::{read_added, Call},
    redis::direct::DirectSocket,
    Added, Error,
};
use napi::Env;

use super::{
    poll::{is_readable, Events, PollHandle, Polled},
    spin::Spin,
};

thread_local! {
    /// Sockets of this thread.
    static OPEN: RefCell<Vec<Weak<Calls>>> = const { RefCell::new(Vec::new()) };
}

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
        OPEN.with_borrow_mut(|open| {
            open.retain(|calls| calls.strong_count() > 0);
            open.push(Rc::downgrade(&calls));
        });
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
        let alive = !events.write || self.state.borrow_mut().flush(poll);
        if events.read || !alive {
            self.read(env, alive);
        }
    }
}

impl Calls {
    /// Reads what came, if the socket is alive, and tells of it.
    fn read(&self, env: Env, alive: bool) {
        let mut answers = Vec::new();
        let unanswered = {
            let mut state = self.state.borrow_mut();
            let alive = alive && state.receive(&mut answers);
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

    fn has_calls_of(&self, queue: &str) -> bool {
        let state = self.state.borrow();
        !state.waiting.is_empty() && state.queue == queue
    }
}

/// Reads what this thread's adds to a queue were answered, ahead of its turn. False when they were not answered yet. A server answers an add and
/// the worker that waits for its job at the same time: who awaits the add is to go on before the job starts.
pub fn read_answers(env: Env, queue: &str) -> bool {
    let open: Vec<_> = OPEN.with_borrow(|open| open.iter().filter_map(Weak::upgrade).collect());
    let mut answered = true;
    for calls in open.iter().filter(|calls| calls.has_calls_of(queue)) {
        if is_readable(calls.fd) {
            calls.read(env, true);
        } else {
            answered = false;
        }
    }
    answered
}

impl State {
    /// Sends what is left. False when the socket is of no use any more.
    fn flush(&mut self, poll: &PollHandle) -> bool {
        match self.socket.flush() {
            Ok(true) => poll.poll_for(Events {
                read: true,
                write: false,
            }),
            Ok(false) => {}
            Err(_) => return false,
        }
        true
    }

    /// Reads what came. False when the socket is of no use any more.
    fn receive(&mut self, answers: &mut Answers) -> bool {
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
