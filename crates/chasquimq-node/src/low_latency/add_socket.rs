//! A socket for adds: written to on JavaScript's own thread, whose event loop polls it for the answers.

use std::{
    cell::RefCell,
    collections::VecDeque,
    os::fd::RawFd,
    rc::{Rc, Weak},
};

use chasquimq::{
    add::{read_added, split_answer, Call},
    redis::{
        commands::Commands,
        wire::{Answer, Value, Watched},
    },
    worker::StepAlong,
    Added, Error,
};
use napi::Env;

use super::{
    along::{step_for, Along, Carrier},
    look::SentLook,
    poll::{is_readable, PollHandle, Polled},
    spin::Spin,
};
use crate::queue::messages::Request;

thread_local! {
    /// Sockets of this thread.
    static OPEN: RefCell<Vec<Weak<Calls>>> = const { RefCell::new(Vec::new()) };
}

/// Calls and what they were answered.
pub type Answers = Vec<(Request, Call, chasquimq::Result<Added>)>;

/// What hears of a socket's calls, on JavaScript's thread; it may use or close the socket meanwhile.
pub trait SocketOwner {
    /// Calls were answered.
    fn answered(&self, env: Env, answers: Answers);
    /// The socket is of no use any more, and these calls were not answered. `is_refused`: the server answers, and refused the first of them.
    fn broken(&self, calls: Vec<(Request, Call)>, is_refused: bool);
}

/// An open socket. All of it happens on JavaScript's thread.
pub struct AddSocket {
    calls: Rc<Calls>,
}

/// The calls under way on a socket.
struct Calls {
    fd: RawFd,
    own: Weak<Self>,
    poll: RefCell<Option<PollHandle>>,
    state: RefCell<State>,
    spin: Option<Spin>,
    owner: Rc<dyn SocketOwner>,
}

struct State {
    queue: String,
    socket: Watched,
    waiting: VecDeque<Sent>,
    // what the first of them was answered so far
    answers: Vec<Answer>,
}

/// What has no answer.
enum Sent {
    /// A call, and what went along with it.
    Add(Request, Call, Option<Along>),
    /// A command that is carried for a worker.
    Carried(Along),
    /// A look at a job.
    Look(SentLook),
}

impl Sent {
    /// How many answers it gets.
    fn answers(&self) -> usize {
        match self {
            Sent::Add(_, call, _) => call.stashes() + 1,
            Sent::Carried(_) => 1,
            Sent::Look(look) => look.answers(),
        }
    }
}

/// What came.
#[derive(Default)]
struct Came {
    answers: Answers,
    steps: Vec<(Along, Option<Value>)>,
    // of those it is not known whether they were carried out
    lost: Vec<Along>,
    looks: Vec<(SentLook, Vec<Answer>)>,
    // an add, which is for the engine's connection then
    is_refused: bool,
}

impl AddSocket {
    /// Has this thread's event loop poll a socket. `None` when it cannot. `queue` is as users see it.
    pub fn open(env: Env, queue: String, socket: Watched, owner: Rc<dyn SocketOwner>) -> Option<Self> {
        let calls = Rc::new_cyclic(|own| Calls {
            fd: socket.fd(),
            own: own.clone(),
            poll: RefCell::default(),
            state: RefCell::new(State {
                queue,
                socket,
                waiting: VecDeque::new(),
                answers: Vec::new(),
            }),
            spin: Spin::open(env),
            owner,
        });
        let Some(poll) = PollHandle::open(env, calls.clone()) else {
            calls.spin.iter().for_each(Spin::close);
            return None;
        };
        calls.poll.replace(Some(poll));
        OPEN.with_borrow_mut(|open| {
            open.retain(|calls| calls.strong_count() > 0);
            open.push(Rc::downgrade(&calls));
        });
        Some(Self { calls })
    }

    /// Reads what has come, when it is called: whoever hears of it may use or close the socket meanwhile.
    pub fn reader(&self) -> impl FnOnce(Env) + use<> {
        let calls = self.calls.clone();
        move |env| calls.read(env)
    }

    /// The step of a worker of this thread that waits for a job of the queue.
    pub fn step_for_job(&self) -> Option<(Along, StepAlong)> {
        let state = self.calls.state.borrow();
        step_for(&state.queue, state.socket.place())
    }

    /// Sends a call, and what goes along with it.
    /// # Errors
    /// Every call that was not answered, this one included, when the connection is broken.
    pub fn send(
        &self,
        request: Request,
        call: Call,
        along: Option<Along>,
        commands: impl FnOnce(&Call) -> Commands<'_>,
    ) -> Result<(), Vec<(Request, Call)>> {
        let replies = call.stashes() + 1;
        let is_sent = self.calls.state.borrow().socket.send(&commands(&call), replies).is_ok();
        match self.calls.expect(Sent::Add(request, call, along), is_sent) {
            true => Ok(()),
            false => Err(self.calls.give_up()),
        }
    }

    /// Whether all that was sent is answered.
    pub fn is_idle(&self) -> bool {
        self.calls.state.borrow().waiting.is_empty()
    }

    /// Sends a look.
    /// # Errors
    /// As [`AddSocket::send`].
    pub fn look(&self, look: SentLook) -> Result<(), Vec<(Request, Call)>> {
        let (commands, replies) = (look.commands(), look.answers());
        let is_sent = self.calls.state.borrow().socket.send(&commands.into(), replies).is_ok();
        match self.calls.expect(Sent::Look(look), is_sent) {
            true => Ok(()),
            false => Err(self.calls.give_up()),
        }
    }

    /// Closes the socket and gives back what was not answered.
    pub fn close(self) -> Vec<(Request, Call)> {
        self.calls.poll.borrow().iter().for_each(PollHandle::close);
        self.calls.spin.iter().for_each(Spin::close);
        self.calls.give_up()
    }
}

// the poll handle holds on to the calls, and they to it
impl Drop for AddSocket {
    fn drop(&mut self) {
        self.calls.poll.take();
    }
}

impl Polled for Calls {
    fn fd(&self) -> RawFd {
        self.fd
    }

    fn ready(&self, env: Env, _: &PollHandle) {
        self.read(env);
    }
}

impl Calls {
    /// Reads what came, and tells of it.
    fn read(&self, env: Env) {
        let mut came = Came::default();
        let alive = {
            let mut state = self.state.borrow_mut();
            let alive = state.receive(&mut came);
            if state.waiting.is_empty() {
                self.spin.iter().for_each(Spin::end);
            }
            alive
        };
        if !alive {
            let unanswered = self.give_up();
            self.owner.broken(unanswered, came.is_refused);
        }
        if !came.answers.is_empty() {
            self.owner.answered(env, came.answers);
        }
        for (along, reply) in came.steps {
            if let Some(carrier) = self.own.upgrade() {
                along.stepped(env, reply, carrier);
            }
        }
        came.lost.iter().for_each(Along::lost);
        for (look, answers) in came.looks {
            look.settle(answers);
        }
    }

    /// Something is to be answered, unless it could not be sent. Whether it was.
    fn expect(&self, sent: Sent, is_sent: bool) -> bool {
        self.state.borrow_mut().waiting.push_back(sent);
        if is_sent {
            self.spin.iter().for_each(Spin::begin);
        }
        is_sent
    }

    /// The calls that were not answered; what went along with them is lost.
    fn give_up(&self) -> Vec<(Request, Call)> {
        let waiting = std::mem::take(&mut self.state.borrow_mut().waiting);
        let mut calls = Vec::with_capacity(waiting.len());
        for sent in waiting {
            let along = match sent {
                Sent::Add(request, call, along) => {
                    calls.push((request, call));
                    along
                }
                Sent::Carried(along) => Some(along),
                Sent::Look(look) => {
                    look.lost();
                    None
                }
            };
            along.iter().for_each(Along::lost);
        }
        calls
    }

    fn has_calls_of(&self, queue: &str) -> bool {
        let state = self.state.borrow();
        state.queue == queue && state.waiting.iter().any(|sent| matches!(sent, Sent::Add(..)))
    }
}

impl Carrier for Calls {
    fn carry(&self, along: Along, command: &[u8]) {
        if !self.poll.borrow().as_ref().is_some_and(PollHandle::is_open) {
            return along.lost();
        }
        let is_sent = self.state.borrow().socket.send(&command.to_vec().into(), 1).is_ok();
        if !self.expect(Sent::Carried(along), is_sent) {
            let unanswered = self.give_up();
            self.owner.broken(unanswered, false);
        }
    }
}

/// Reads what this thread's adds to a queue were answered, ahead of its turn. False when they were not answered yet. A server answers an add and
/// the worker that waits for its job at the same time: who awaits the add is to go on before the job starts.
pub fn read_answers(env: Env, queue: &str) -> bool {
    let open: Vec<_> = OPEN.with_borrow(|open| open.iter().filter_map(Weak::upgrade).collect());
    let mut answered = true;
    for calls in open.iter().filter(|calls| calls.has_calls_of(queue)) {
        if is_readable(calls.fd) {
            calls.read(env);
        } else {
            answered = false;
        }
    }
    answered
}

impl State {
    /// Reads what came. False when the socket is of no use any more.
    fn receive(&mut self, came: &mut Came) -> bool {
        let mut replies = Vec::new();
        let alive = self.socket.receive(&mut replies).is_ok();
        for reply in replies {
            let wanted = self.waiting.front().map_or(1, Sent::answers);
            if self.answers.len() + 1 < wanted {
                self.answers.push(reply);
                continue;
            }
            let mut answers = std::mem::take(&mut self.answers);
            match (self.waiting.pop_front(), reply) {
                (None, _) => return false,
                (Some(Sent::Look(look)), reply) => {
                    answers.push(reply);
                    came.looks.push((look, answers));
                }
                (Some(Sent::Carried(along)), Ok(reply)) => came.steps.push((along, Some(reply))),
                (Some(Sent::Carried(along)), Err(_)) => came.lost.push(along),
                // where something could not be stored, the call says why
                (Some(Sent::Add(request, call, along)), reply) => {
                    if let Some(sent) = self.added(request, call, along, reply, came) {
                        self.waiting.push_front(sent);
                        return false;
                    }
                }
            }
        }
        alive
    }

    /// Takes the answer to an add; gives it back where the engine's connection knows what to do about that.
    fn added(
        &self,
        request: Request,
        call: Call,
        along: Option<Along>,
        reply: Answer,
        came: &mut Came,
    ) -> Option<Sent> {
        let (reply, step) = match (&along, reply) {
            (Some(_), Ok(reply)) => {
                let (added, step) = split_answer(reply);
                (Ok(added), step)
            }
            (_, reply) => (reply, None),
        };
        match reply.and_then(|reply| read_added(reply, &self.queue)) {
            answer @ (Ok(_) | Err(Error::QueueFull { .. })) => {
                came.answers.push((request, call, answer));
                came.steps.extend(along.map(|along| (along, step)));
                None
            }
            Err(_) => {
                came.is_refused = true;
                Some(Sent::Add(request, call, along))
            }
        }
    }
}
