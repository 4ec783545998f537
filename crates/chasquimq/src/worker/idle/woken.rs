//! How waits end, as the worker's loop hears it.

use redis::Value;

use super::short_way::{End, SentStep};
use crate::{
    error::{Error, Result},
    worker::{
        standing::Standing,
        step_request::{Elsewhere, StepRequest},
        take::{answer::Answer, apart::has_stubs},
    },
};

/// How a wait ended.
#[derive(Debug)]
pub(crate) enum Woken {
    /// There is work (true), or the time was over.
    Marker(bool),
    /// The wait takes as long as it may. It goes on.
    LookDue,
    /// Limits are lifted (true), or the same.
    Lift(bool),
    /// The worker hears by something else than before.
    Hearing,
    /// A step was carried out.
    Stepped(Value),
    /// It was carried out, and its answer was read, perhaps a while ago.
    Read(Box<Answer>),
    /// It was carried out, and its answer cannot be read.
    Unread(Error),
    /// It is not known whether it was carried out.
    Lost,
    /// What a step took has ended meanwhile, and this one records it: its reply, unless that is lost.
    Recorded(Box<SentStep>, Option<Value>),
    /// That is recorded and told.
    Told,
}

/// Ends, with the steps that somebody else took.
pub(crate) type Ends = Vec<(Woken, Option<Elsewhere>)>;

/// What the loop hears of the end of something that it had left to others.
pub(crate) fn read_end(end: End, standing: &mut Standing) -> (Woken, Option<Elsewhere>) {
    let elsewhere = |request: &StepRequest| {
        Some(Elsewhere {
            number: request.number,
            room: request.room,
        })
    };
    match end {
        End::Marker(came) => (Woken::Marker(came), None),
        End::Hearing => (Woken::Hearing, None),
        End::Stepped(request, reply) => (stepped(reply, standing), elsewhere(&request)),
        End::Taken(request, answer) => (read(*answer), elsewhere(&request)),
        End::TakeLost(request) => (Woken::Lost, elsewhere(&request)),
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
