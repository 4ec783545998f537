//! What a script test starts from: a queue of its own, batches of jobs, steps of workers.

pub mod plan;
pub mod queue;
pub mod scheduler;
pub mod source;
pub mod step;
pub mod tree;
