//! 2. waiting -> active: how much a step takes, what its answer brings, and what is held until it ends.
//!
//! `pace` decides how much, `due` when to look for delayed jobs, `room` is what a step may take. `answer` is what a step brought, of which `parts` tell what was
//! `taken` into a `batch`; `apart` reads frames that lie apart. `in_flight` holds it, and `offers` what nobody has started.

pub(super) mod answer;
pub(super) mod apart;
pub(super) mod batch;
pub(super) mod due;
pub(super) mod in_flight;
pub(super) mod offers;
pub(super) mod pace;
pub(super) mod parts;
pub(super) mod room;
pub(super) mod taken;
