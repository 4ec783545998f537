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
/// The server answers a wait within its time, and this; a connection that does not is dead.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// A step that somebody else than the loop took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Elsewhere {
    pub(crate) number: i64,
    /// Jobs it asks for.
    pub(crate) room: Room,
}

/// What a worker knows of how it is told of work (`lua/states/waiting_workers.lua`).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Waits {
    /// It hears nothing.
    #[default]
    Deaf,
    /// It hears, and is not told.
    No,
    /// It is told of the next work.
    Yes,
}

/// What a step asks for.
#[derive(Debug)]
pub(crate) struct StepRequest {
    pub(crate) number: i64,
    // of the caller's clock
    now_ms: i64,
    pub(crate) room: Room,
    leaves_due: bool,
    /// When the next job is due is told though no slot is left: its worker may be the only one that knows.
    pub(crate) asks_due: bool,
    pub(crate) waits: Waits,
    // the system's clock, when it was put together
    pub(crate) sent_us: i64,
    pub(crate) sent: Moment,
}

impl StepRequest {
    /// `leaves_due`: delayed jobs stay where they are.
    pub(crate) fn new(number: i64, now_ms: i64, room: Room, leaves_due: bool) -> Self {
        Self {
            number,
            now_ms,
            room,
            leaves_due,
            asks_due: true,
            waits: Waits::default(),
            sent_us: system_now_us(),
            sent: Moment::now(),
        }
    }

    /// The same step as this one, to be sent now.
    pub(crate) fn again(elsewhere: Elsewhere, now_ms: i64, room: Room) -> Self {
        Self::new(elsewhere.number, now_ms, room, false)
    }

    /// With what ended, and the offset of the caller's clock.
    pub(crate) fn pack(&self, options: &WorkerOptions, offset_us: i64, outcomes: &PackedOutcomes) -> Vec<u8> {
        let mut packed = Packer::with_capacity(STEP_BYTES + outcomes.blob.len() + outcomes.keeps.len());
        packed
            // a server that knows no functions repeats the arguments up to a zero byte, in an error that has to be text
            .int(0)
            .int(self.now_ms)
            .str(&options.id)
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
            .int(i64::from(self.asks_due))
            .int(i64::from(options.concurrency))
            .int(self.waits as i64);
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
