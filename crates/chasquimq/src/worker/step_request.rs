//! What a step asks for, as `lua/transitions/step.lua` reads it.

use std::time::Duration;

use super::{
    options::{pack_limits, WorkerOptions},
    record::packed_outcomes::PackedOutcomes,
    take::room::Room,
};
use crate::{
    clock::{system_now_us, Moment},
    job::msgpack::Packer,
    redis::call::library::Arg,
};

/// Bytes of jobs a step takes beyond those that start now.
const MAX_BYTES: i64 = 4 * 1024 * 1024;
/// What a step asks for has about so many bytes, without outcomes.
const STEP_BYTES: usize = 160;
/// The slot of steps that the loop waits for.
const OWN: &str = "s";
/// That of steps behind a wait, which are counted apart: they may be carried out after later ones.
const BEHIND_WAIT: &str = "w";

/// The server answers a wait within its time, and this; a connection that does not is dead.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// A step behind a wait.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Behind {
    pub(crate) number: i64,
    /// Jobs it asks for.
    pub(crate) room: Room,
    /// It is behind none: an add took it along.
    pub(crate) is_along: bool,
}

/// What a step asks for.
#[derive(Debug)]
pub(crate) struct StepRequest {
    slot: &'static str,
    pub(crate) number: i64,
    // of the caller's clock
    now_ms: i64,
    pub(crate) room: Room,
    leaves_due: bool,
    /// What its worker passed on is heard of by this, if it finds nothing.
    pub(crate) hears: bool,
    /// When the next job is due is told though no slot is left: its worker may be the only one that knows.
    pub(crate) asks_due: bool,
    // the system's clock, when it was put together
    pub(crate) sent_us: i64,
    pub(crate) sent: Moment,
}

impl StepRequest {
    /// `leaves_due`: delayed jobs stay where they are.
    pub(crate) fn new(number: i64, now_ms: i64, room: Room, leaves_due: bool) -> Self {
        Self {
            slot: OWN,
            number,
            now_ms,
            room,
            leaves_due,
            hears: false,
            asks_due: true,
            sent_us: system_now_us(),
            sent: Moment::now(),
        }
    }

    /// The same behind a wait.
    pub(crate) fn behind_wait(number: i64, now_ms: i64, room: Room) -> Self {
        Self {
            slot: BEHIND_WAIT,
            ..Self::new(number, now_ms, room, false)
        }
    }

    /// The same step as this one, to be sent now.
    pub(crate) fn again(behind: Behind, now_ms: i64, room: Room) -> Self {
        match behind.is_along {
            true => Self::new(behind.number, now_ms, room, false),
            false => Self::behind_wait(behind.number, now_ms, room),
        }
    }

    /// With what ended, and the offset of the caller's clock.
    pub(crate) fn pack(&self, options: &WorkerOptions, offset_us: i64, outcomes: &PackedOutcomes) -> Vec<u8> {
        let mut packed = Packer::with_capacity(STEP_BYTES + outcomes.blob.len() + outcomes.keeps.len());
        packed
            // a server that knows no functions repeats the arguments up to a zero byte, in an error that has to be text
            .int(0)
            .int(self.now_ms)
            .str(&options.id)
            .str(self.slot)
            .int(self.number)
            .int(options.lock_duration.as_millis() as i64)
            .str(&options.name)
            .int(self.room.want)
            .int(self.room.reach)
            .int(self.room.surplus)
            .int(MAX_BYTES)
            .int(offset_us);
        pack_limits(&mut packed, options.limiter, options.group_rules);
        packed
            .int(i64::from(self.leaves_due))
            .int(i64::from(self.hears))
            .int(i64::from(self.asks_due))
            .int(i64::from(options.concurrency));
        if let Some(plain) = &outcomes.plain {
            packed.0.extend_from_slice(plain);
            return packed.0;
        }
        packed.0.extend_from_slice(&outcomes.blob);
        packed.0.extend_from_slice(&outcomes.keeps);
        packed.0
    }
}

/// The arguments of a step.
pub(crate) fn step_args<'a>(packed: &'a [u8], outcomes: &'a PackedOutcomes) -> Vec<Arg<'a>> {
    let mut args = vec![Arg::from(packed)];
    args.extend(outcomes.large());
    args
}
