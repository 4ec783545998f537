//! 4. active -> completed | failed | delayed | waiting: outcomes on their way to the server.
//!
//! `report` is how jobs ended, `unrecorded` what waits for a step, `portion` how much of it goes into one. `finish` packs it, with `failed` what failed alike and
//! `place` where each job is; `outcomes` finds in it what was refused.

pub(super) mod failed;
pub(super) mod finish;
pub(super) mod outcomes;
pub(super) mod place;
pub(super) mod portion;
pub(super) mod report;
pub(super) mod unrecorded;
