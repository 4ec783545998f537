//! 4. active -> completed | failed | delayed | waiting: outcomes on their way to the server.
//!
//! `report` is how jobs ended, `unrecorded` what waits for a step, `portion` how much of it goes into one. `pack` packs it, with `failed` what failed alike and
//! `place` where each job is; `packed_outcomes` finds in it what was refused.

pub(super) mod failed;
pub(super) mod pack;
pub(super) mod packed_outcomes;
pub(super) mod place;
pub(super) mod portion;
pub(super) mod report;
pub(super) mod unrecorded;
