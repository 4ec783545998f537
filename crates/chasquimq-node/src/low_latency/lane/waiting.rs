//! What was sent by a lane and is not answered.

use std::{collections::VecDeque, rc::Rc, sync::Arc};

use chasquimq::{
    add::{read_added, split_answer, Call},
    redis::wire::{Answer, Listener, Value, Watched},
    Added, Error,
};
use napi::Env;

use crate::{
    low_latency::{along::Along, look::SentLook},
    queue::messages::Request,
};

/// Calls that were not answered.
pub type Calls = Vec<(Request, Call)>;

/// Calls and what they were answered.
pub type Answers = Vec<(Request, Call, chasquimq::Result<Added>)>;

/// Who sends calls by a lane, on JavaScript's thread. What hears of their answers may send more, or leave.
pub trait User {
    /// The queue, as users see it.
    fn queue(&self) -> &str;
    /// Calls were answered.
    fn answered(&self, env: Env, answers: Answers);
    /// The lane is of no use any more, and these calls were not answered. `is_refused`: the server answers, and refused the first of them.
    fn broken(&self, calls: Calls, is_refused: bool);
}

/// A connection, and what has no answer there.
pub(super) struct State {
    pub(super) socket: Watched,
    pub(super) waiting: VecDeque<Sent>,
    // what the first of them was answered so far
    answers: Vec<Answer>,
}

/// What has no answer.
pub(super) enum Sent {
    /// A call, and what went along with it.
    Add(Rc<dyn User>, Request, Call, Option<Along>),
    /// A look at a job.
    Look(Rc<dyn User>, SentLook),
    /// A command that is carried for a worker.
    Carried(Along),
    /// That of somebody who left: so many answers are nobody's.
    Left(usize),
}

impl Sent {
    /// How many answers it gets.
    fn answers(&self) -> usize {
        match self {
            Sent::Add(_, _, call, _) => call.stashes() + 1,
            Sent::Look(_, look) => look.answers(),
            Sent::Carried(_) => 1,
            Sent::Left(answers) => *answers,
        }
    }

    pub(super) fn is_of(&self, user: &Rc<dyn User>) -> bool {
        matches!(self, Sent::Add(of, ..) | Sent::Look(of, _) if Rc::ptr_eq(of, user))
    }

    /// It is not answered. Gives a call back, and what went along with it is lost.
    pub(super) fn give_up(self) -> Option<(Request, Call)> {
        match self {
            Sent::Add(_, request, call, along) => {
                along.iter().for_each(Along::lost);
                return Some((request, call));
            }
            Sent::Look(_, look) => look.lost(),
            Sent::Carried(along) => along.lost(),
            Sent::Left(_) => {}
        }
        None
    }
}

/// What came.
#[derive(Default)]
pub(super) struct Came {
    pub(super) answers: Vec<(Rc<dyn User>, Answers)>,
    pub(super) steps: Vec<(Along, Option<Value>)>,
    // of those it is not known whether they were carried out
    pub(super) lost: Vec<Along>,
    pub(super) looks: Vec<(SentLook, Vec<Answer>)>,
    // they have heard something
    pub(super) heard: Vec<Arc<dyn Listener>>,
    // calls of users whose first one is for the engine's connection
    pub(super) refused: Vec<(Rc<dyn User>, Calls)>,
}

impl Came {
    fn answered(&mut self, user: Rc<dyn User>, answer: (Request, Call, chasquimq::Result<Added>)) {
        match self.answers.last_mut() {
            Some((last, answers)) if Rc::ptr_eq(last, &user) => answers.push(answer),
            _ => self.answers.push((user, vec![answer])),
        }
    }
}

impl State {
    pub(super) fn new(socket: Watched) -> Self {
        Self {
            socket,
            waiting: VecDeque::new(),
            answers: Vec::new(),
        }
    }

    /// Reads what came. False when the connection is of no use any more.
    pub(super) fn receive(&mut self, came: &mut Came) -> bool {
        let mut replies = Vec::new();
        let alive = self.socket.receive(&mut replies).is_ok();
        came.heard = self.socket.heard();
        for reply in replies {
            let wanted = self.waiting.front().map_or(1, Sent::answers);
            if self.answers.len() + 1 < wanted {
                self.answers.push(reply);
                continue;
            }
            let mut answers = std::mem::take(&mut self.answers);
            match (self.waiting.pop_front(), reply) {
                (None, _) => return false,
                (Some(Sent::Left(_)), _) => {}
                (Some(Sent::Look(_, look)), reply) => {
                    answers.push(reply);
                    came.looks.push((look, answers));
                }
                (Some(Sent::Carried(along)), Ok(reply)) => came.steps.push((along, Some(reply))),
                (Some(Sent::Carried(along)), Err(_)) => came.lost.push(along),
                // where something could not be stored, the call says why
                (Some(Sent::Add(user, request, call, along)), reply) => {
                    self.added(user, (request, call), along, reply, came);
                }
            }
        }
        alive
    }

    /// Takes the answer to an add. Where the engine's connection knows what to do about that, the calls of its user are for that one.
    fn added(
        &mut self,
        user: Rc<dyn User>,
        (request, call): (Request, Call),
        along: Option<Along>,
        reply: Answer,
        came: &mut Came,
    ) {
        let (reply, step) = match (&along, reply) {
            (Some(_), Ok(reply)) => {
                let (added, step) = split_answer(reply);
                (Ok(added), step)
            }
            (_, reply) => (reply, None),
        };
        match reply.and_then(|reply| read_added(reply, user.queue())) {
            answer @ (Ok(_) | Err(Error::QueueFull { .. } | Error::GroupFull { .. })) => {
                came.answered(user, (request, call, answer));
                came.steps.extend(along.map(|along| (along, step)));
            }
            Err(_) => {
                along.iter().for_each(Along::lost);
                let mut calls = vec![(request, call)];
                calls.extend(self.take_calls(&user));
                came.refused.push((user, calls));
            }
        }
    }

    /// Takes out what a user has sent, whose answers are nobody's; gives back its calls.
    pub(super) fn take_calls(&mut self, user: &Rc<dyn User>) -> Calls {
        let own = self.waiting.iter_mut().filter(|sent| sent.is_of(user));
        let taken = own.map(|sent| {
            let left = Sent::Left(sent.answers());
            std::mem::replace(sent, left)
        });
        taken.filter_map(Sent::give_up).collect()
    }
}
