//! A connection of this thread's queues, or of its workers that wait: written to on JavaScript's own thread, whose event loop polls it for the answers, and for
//! news.

mod waiting;

use std::{
    cell::RefCell,
    os::fd::RawFd,
    rc::{Rc, Weak},
    sync::{Arc, Mutex},
};

use chasquimq::{
    add::Call,
    redis::{
        call::commands::Commands,
        wire::{Watched, WireId},
    },
    worker::StepAlong,
};
use napi::Env;

pub use self::waiting::{Answers, Calls, User};
use self::waiting::{Came, Sent, State};
use super::{
    along::{hear, step_for, Along, Carrier},
    look::SentLook,
    poll::{PollHandle, Polled},
    spin::Spin,
};
use crate::{queue::messages::Request, sink::OnJsThread};

thread_local! {
    /// Those of this thread.
    static OPEN: RefCell<Vec<Weak<Lane>>> = const { RefCell::new(Vec::new()) };
}

/// An open connection. All of it happens on JavaScript's thread.
pub struct Lane {
    own: Weak<Self>,
    fd: RawFd,
    poll: RefCell<Option<PollHandle>>,
    spin: Option<Spin>,
    state: RefCell<State>,
    users: RefCell<Vec<Rc<dyn User>>>,
    wakers: Wakers,
}

/// Those by whom the engine reaches the thread of a lane.
#[derive(Clone, Default)]
pub struct Wakers(Arc<Mutex<Vec<std::sync::Weak<dyn OnJsThread>>>>);

impl Wakers {
    /// Has the lane of these read what came for it: by the first of them that is not closed.
    pub fn wake(&self) {
        let Ok(all) = self.0.lock() else { return };
        for waker in all.iter().filter_map(std::sync::Weak::upgrade) {
            let wakers = self.clone();
            let is_heard = waker.on_js_thread(Box::new(move |env| {
                if let Some(lane) = Lane::find(|lane| Arc::ptr_eq(&lane.wakers.0, &wakers.0)) {
                    lane.read(env);
                }
            }));
            if is_heard {
                return;
            }
        }
    }

    /// By this one, too.
    pub fn add(&self, waker: std::sync::Weak<dyn OnJsThread>) {
        if let Ok(mut all) = self.0.lock() {
            all.retain(|waker| waker.strong_count() > 0);
            all.push(waker);
        }
    }
}

impl Lane {
    /// Has this thread's event loop poll a connection. `None` when it cannot. `wakers` have it read what the engine has read.
    pub fn open(env: Env, socket: Watched, wakers: Wakers) -> Option<Rc<Self>> {
        let lane = Rc::new_cyclic(|own| Self {
            own: own.clone(),
            fd: socket.fd(),
            poll: RefCell::default(),
            spin: Spin::open(env),
            state: RefCell::new(State::new(socket)),
            users: RefCell::default(),
            wakers,
        });
        let Some(poll) = PollHandle::open(env, lane.clone()) else {
            lane.spin.iter().for_each(Spin::close);
            return None;
        };
        lane.poll.replace(Some(poll));
        OPEN.with_borrow_mut(|open| {
            open.retain(|lane| lane.strong_count() > 0);
            open.push(Rc::downgrade(&lane));
        });
        Some(lane)
    }

    fn find(is_wanted: impl Fn(&Self) -> bool) -> Option<Rc<Self>> {
        let all: Vec<_> = OPEN.with_borrow(|open| open.iter().filter_map(Weak::upgrade).collect());
        all.into_iter()
            .find(|lane| lane.poll.borrow().is_some() && is_wanted(lane))
    }

    /// The open lane of this connection.
    pub fn of(wire: WireId) -> Option<Rc<Self>> {
        Self::find(|lane| lane.state.borrow().socket.id() == wire)
    }

    /// It is of use to this one until [`Seat::leave`], or [`User::broken`].
    pub fn take_seat(self: Rc<Self>, user: Rc<dyn User>, waker: std::sync::Weak<dyn OnJsThread>) -> Seat {
        self.wakers.add(waker);
        self.users.borrow_mut().push(user.clone());
        Seat { lane: self, user }
    }

    /// Closes one that nobody has taken a seat in.
    pub fn close_unused(&self) {
        if self.users.borrow().is_empty() {
            self.close();
        }
    }

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
        for (user, calls) in came.refused {
            user.broken(calls, true);
        }
        if !alive {
            self.break_off(None);
        }
        for (user, answers) in came.answers {
            user.answered(env, answers);
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
        for listener in came.heard {
            hear(&*listener, self);
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

    /// It broke: whoever uses it is told, but for one, who is given back what was not answered.
    fn break_off(&self, but: Option<&Rc<dyn User>>) -> Calls {
        let users = std::mem::take(&mut *self.users.borrow_mut());
        self.close();
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for user in users {
            let calls = self.state.borrow_mut().take_calls(&user);
            match but.is_some_and(|but| Rc::ptr_eq(but, &user)) {
                true => own = calls,
                false => others.push((user, calls)),
            }
        }
        let waiting = std::mem::take(&mut self.state.borrow_mut().waiting);
        waiting.into_iter().for_each(|sent| drop(sent.give_up()));
        for (user, calls) in others {
            user.broken(calls, false);
        }
        own
    }

    // the poll handle holds on to the lane, and that to it
    fn close(&self) {
        if let Some(poll) = self.poll.take() {
            poll.close();
            self.spin.iter().for_each(Spin::close);
        }
    }
}

impl Polled for Lane {
    fn fd(&self) -> RawFd {
        self.fd
    }

    fn ready(&self, env: Env, _: &PollHandle) {
        self.read(env);
    }
}

impl Carrier for Lane {
    fn carry(&self, along: Along, command: &[u8]) {
        if self.poll.borrow().is_none() {
            return along.lost();
        }
        let is_sent = self.state.borrow().socket.send(&command.to_vec().into(), 1).is_ok();
        if !self.expect(Sent::Carried(along), is_sent) {
            self.break_off(None);
        }
    }
}

/// Somebody's part in a lane.
pub struct Seat {
    lane: Rc<Lane>,
    user: Rc<dyn User>,
}

impl Seat {
    /// The step of a worker of this thread that waits for a job of the queue.
    pub fn step_for_job(&self) -> Option<(Along, StepAlong)> {
        step_for(self.user.queue(), self.lane.state.borrow().socket.place())
    }

    /// Sends a call, and what goes along with it.
    /// # Errors
    /// Every call of this user's that was not answered, this one included, when the connection is broken.
    pub fn send(
        &self,
        request: Request,
        call: Call,
        along: Option<Along>,
        commands: impl FnOnce(&Call) -> Commands<'_>,
    ) -> Result<(), Calls> {
        let replies = call.stashes() + 1;
        let is_sent = self.write(&commands(&call), replies);
        self.expect(Sent::Add(self.user.clone(), request, call, along), is_sent)
    }

    /// Sends a look.
    /// # Errors
    /// As [`Seat::send`].
    pub fn look(&self, look: SentLook) -> Result<(), Calls> {
        let is_sent = self.write(&look.commands().into(), look.answers());
        self.expect(Sent::Look(self.user.clone(), look), is_sent)
    }

    fn write(&self, commands: &Commands<'_>, replies: usize) -> bool {
        self.lane.state.borrow().socket.send(commands, replies).is_ok()
    }

    fn expect(&self, sent: Sent, is_sent: bool) -> Result<(), Calls> {
        match self.lane.expect(sent, is_sent) {
            true => Ok(()),
            false => Err(self.lane.break_off(Some(&self.user))),
        }
    }

    /// Whether all that this user sent is answered.
    pub fn is_idle(&self) -> bool {
        let state = self.lane.state.borrow();
        !state.waiting.iter().any(|sent| sent.is_of(&self.user))
    }

    /// Gives back what was not answered.
    pub fn leave(self) -> Calls {
        let calls = self.lane.state.borrow_mut().take_calls(&self.user);
        let is_last = {
            let mut users = self.lane.users.borrow_mut();
            users.retain(|user| !Rc::ptr_eq(user, &self.user));
            users.is_empty()
        };
        if is_last {
            self.lane.break_off(None);
        }
        calls
    }
}
