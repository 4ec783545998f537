//! Outcomes on their way: as the step script takes them, and which of them it refused.

use std::sync::Arc;

use crate::{
    error::{Error, Result},
    job::{frame::id_in, msgpack::Packer},
    redis::call::{library::Arg, reply::Reply},
    worker::take::in_flight::{Group, InFlight},
};

/// An outcome that was refused.
#[derive(Debug)]
pub struct Rejected {
    /// The job's handle.
    pub handle: u32,
    /// Why.
    pub error: Error,
}

impl Rejected {
    /// A parent that must not complete is held on to: its try is to fail.
    pub fn is_held(&self) -> bool {
        matches!(self.error, Error::PendingChildren { .. } | Error::FailedChildren { .. })
    }
}

/// What became of a failed try.
#[derive(Debug)]
pub struct Failure {
    /// The job's handle.
    pub handle: u32,
    /// Where the job went.
    pub state: FailureState,
    /// Tries that ended.
    pub attempts_made: u32,
}

/// Where a failed try leaves the job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FailureState {
    /// Failed for good.
    Failed,
    /// Tried again after so many milliseconds.
    Delayed(u64),
    /// Tried again at once.
    Waiting,
}

impl FailureState {
    /// What BullMQ calls the move.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Failed => "moveToFinished",
            Self::Delayed(_) => "moveToDelayed",
            Self::Waiting => "retryJob",
        }
    }
}

/// Outcomes as the step script takes them.
#[derive(Debug, Default)]
pub(crate) struct PackedOutcomes {
    pub(crate) blob: Vec<u8>,
    pub(crate) keeps: Vec<u8>,
    // instead of both, if this is one plain job that completed (`lua/step/fast_path.lua`)
    pub(crate) plain: Option<Vec<u8>>,
    pub(crate) now_ms: u64,
    pub(crate) flushed: Option<u64>,
    // of a report that is recorded by later steps
    pub(crate) is_part: bool,
    pub(crate) failures: Vec<Failure>,
    pub(crate) jobs: u64,
    // jobs that met a rate limit
    pub(crate) limited: Vec<u32>,
    // jobs that go back unstarted: when others have them, that is nobody's error
    pub(crate) returned: Vec<u32>,
    pub(crate) large: Vec<Box<str>>,
    pub(crate) sent: Vec<Sent>,
}

/// An outcome that was refused, as a step's reply tells of it.
#[derive(Debug)]
pub(crate) struct Refusal {
    // of the frame; 0: of a record
    first: u64,
    // in the frame; a record's id
    place: String,
    code: i64,
    claim: u64,
}

impl Refusal {
    /// Reads those of a step's reply.
    /// # Errors
    /// [`Error::Malformed`].
    pub(crate) fn read_all(mut reply: Reply) -> Result<Vec<Self>> {
        let mut refusals = Vec::with_capacity(reply.len());
        while !reply.is_empty() {
            let mut refusal = reply.array()?;
            refusals.push(Self {
                first: refusal.int()? as u64,
                place: refusal.text()?,
                code: refusal.int()?,
                claim: refusal.int()? as u64,
            });
        }
        Ok(refusals)
    }
}

/// Which handles an operation speaks for, to name the refused ones.
#[derive(Debug)]
pub(crate) enum Sent {
    Frame {
        first: u64,
        offset: u32,
        count: u32,
        handle: u32,
        // what the ids of children begin with
        ids: Option<Arc<str>>,
        claim: u64,
        // the frame, when these were the last jobs held of it
        group: Option<Group>,
    },
    Record {
        id: String,
        claim: u64,
        handle: u32,
        group: Option<Group>,
    },
}

impl PackedOutcomes {
    /// Nothing to record.
    pub(crate) fn none(now_ms: u64) -> Self {
        let mut empty = Packer::default();
        empty.array(0);
        Self {
            blob: empty.0.clone(),
            keeps: empty.0,
            now_ms,
            ..Self::default()
        }
    }

    /// What stands behind a step's other arguments: the results and data that numbers in the blob are about, from 1 on.
    pub(crate) fn large(&self) -> impl Iterator<Item = Arg<'_>> {
        self.large.iter().map(|text| Arg::from(&**text))
    }

    /// Which of them were refused.
    pub(crate) fn rejected(&mut self, refusals: Vec<Refusal>, in_flight: &mut InFlight) -> Vec<Rejected> {
        let mut rejected = Vec::new();
        for refusal in refusals {
            let Some((handle, id)) = self.refused(&refusal) else {
                continue;
            };
            let error = Error::from_code(refusal.code, &id, "active", self.command_of(handle));
            let rejection = Rejected { handle, error };
            if rejection.is_held() {
                self.hold_again(refusal.first, handle, in_flight);
            }
            rejected.push(rejection);
        }
        rejected
    }

    /// Handle and id of a job; `None` where its refusal is nobody's error.
    fn refused(&self, refusal: &Refusal) -> Option<(u32, String)> {
        let found = self.sent.iter().find_map(|sent| match sent {
            Sent::Frame {
                first,
                offset,
                count,
                handle,
                ids,
                claim,
                ..
            } if (*first, *claim) == (refusal.first, refusal.claim) => {
                let at: u32 = refusal.place.parse().ok()?;
                let is_one = at >= *offset && at < offset + count;
                is_one.then(|| (handle + at - offset, id_in(ids.as_deref(), first + u64::from(at))))
            }
            Sent::Record { id, handle, claim, .. }
                if (0, id, *claim) == (refusal.first, &refusal.place, refusal.claim) =>
            {
                Some((*handle, id.clone()))
            }
            _ => None,
        });
        found.filter(|(handle, _)| !self.returned.contains(handle))
    }

    /// What is told of them when the answer cannot be read: nobody knows whether they were recorded.
    pub(crate) fn unknown(&self, error: &Error) -> Vec<Rejected> {
        let handles = self.sent.iter().flat_map(|sent| match sent {
            Sent::Frame { handle, count, .. } => *handle..handle + count,
            Sent::Record { handle, .. } => *handle..handle + 1,
        });
        let told = handles.filter(|handle| !self.returned.contains(handle));
        told.map(|handle| Rejected {
            handle,
            error: error.clone(),
        })
        .collect()
    }

    fn hold_again(&mut self, frame: u64, job: u32, in_flight: &mut InFlight) {
        for sent in &mut self.sent {
            match sent {
                Sent::Frame {
                    first,
                    offset,
                    handle,
                    group: Some(_),
                    ..
                } if *first == frame => {
                    // whichever of its jobs ended last
                    let base = *handle - *offset;
                    let group = sent.take_group();
                    return in_flight.hold_again(job, job - base, group);
                }
                Sent::Record { handle, .. } if frame == 0 && *handle == job => {
                    let group = sent.take_group();
                    return in_flight.hold_again(job, 0, group);
                }
                _ => {}
            }
        }
        if let Some((offset, _)) = in_flight.find(job) {
            in_flight.hold_again(job, offset, None);
        }
    }

    /// What BullMQ calls the move that was refused.
    fn command_of(&self, handle: u32) -> &'static str {
        if self.limited.contains(&handle) {
            return "moveJobFromActiveToWait";
        }
        let failure = self.failures.iter().find(|failure| failure.handle == handle);
        failure.map_or("moveToFinished", |failure| failure.state.command())
    }
}

impl Sent {
    fn take_group(&mut self) -> Option<Group> {
        match self {
            Sent::Frame { group, .. } | Sent::Record { group, .. } => group.take(),
        }
    }
}
