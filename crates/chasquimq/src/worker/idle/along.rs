//! What travels for a worker over the connection of somebody else.

/// A step of an idle worker: an add takes it along (`lua/transitions/add_and_step.lua`), or it goes by itself.
#[derive(Debug)]
pub struct StepAlong {
    /// Its number.
    pub number: i64,
    /// What it asks for, packed.
    pub(crate) request: Vec<u8>,
}
