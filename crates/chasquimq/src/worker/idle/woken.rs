//! How waits end, as the worker's loop hears it.

use redis::Value;

use super::short_way::{End, SentStep};
use crate::{
    error::{Error, Result},
    worker::{
        standing::Standing,
        step_request::{Behind, StepRequest},
        take::{answer::Answer, apart::has_stubs},
    },
};

/// How a wait ended.
#[derive(Debug)]
pub(crate) enum Woken {
    /// The marker came (true), or the time was over.
    Marker(bool),
    /// The same of a wait for limits to be lifted.
    Lift(bool),
    /// The step behind the wait, or that an add took along, was carried out.
    Stepped(Value),
    /// It was carried out, and its answer was read, perhaps a while ago.
    Read(Box<Answer>),
    /// It was carried out, and its answer cannot be read.
    Unread(Error),
    /// It is not known whether the step behind the wait was carried out.
    Lost,
    /// It is not known whether the step of this number was carried out, which an add took along.
    LostAlong(i64),
    /// What the wait brought has ended meanwhile, and this step records it: its reply, unless that is lost.
    Recorded(Box<SentStep>, Option<Value>),
    /// That is recorded and told.
    Told,
}

/// Ends, with the steps behind waits, or that went along.
pub(crate) type Ends = Vec<(Woken, Option<Behind>)>;

/// What the loop hears of the end of something that it had left to others.
pub(crate) fn read_end(end: End, standing: &mut Standing) -> (Woken, Option<Behind>) {
    let along = |request: &StepRequest| {
        Some(Behind {
            number: request.number,
            room: request.room,
            is_along: true,
        })
    };
    match end {
        End::Marker(came) => (Woken::Marker(came), None),
        End::Stepped(behind, reply) => (stepped(reply, standing), Some(behind)),
        End::SteppedAlong(request, reply) => (stepped(reply, standing), along(&request)),
        End::Taken(behind, answer) => (read(*answer), Some(behind)),
        End::TakenAlong(request, answer) => (read(*answer), along(&request)),
        End::Lost(behind) => (Woken::Lost, Some(behind)),
        End::TakeLost(request) => (Woken::LostAlong(request.number), None),
        End::Recorded(step, reply) => (Woken::Recorded(step, reply), None),
        End::Told => (Woken::Told, None),
    }
}

fn stepped(reply: Value, standing: &mut Standing) -> Woken {
    // frames that lie apart are read first
    if has_stubs(&reply) {
        return Woken::Stepped(reply);
    }
    read(Answer::read(reply, &mut standing.in_flight))
}

fn read(answer: Result<Answer>) -> Woken {
    match answer {
        Ok(answer) => Woken::Read(Box::new(answer)),
        Err(error) => Woken::Unread(error),
    }
}
