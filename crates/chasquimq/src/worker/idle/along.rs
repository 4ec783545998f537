//! What travels for a worker over the connection of somebody who adds.

/// A step of an idle worker that an add takes along (`lua/transitions/add_and_step.lua`).
#[derive(Debug)]
pub struct StepAlong {
    /// Its number.
    pub number: i64,
    pub(crate) owner: String,
    /// What it asks for, packed.
    pub(crate) request: Vec<u8>,
    /// Number of the step behind the worker's wait, unless that is over.
    pub(crate) behind_wait: i64,
}
