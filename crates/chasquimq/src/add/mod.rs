//! 1. new -> waiting | prioritized | delayed.

pub mod batch;
pub mod producer;
mod records;

pub use batch::{AddBatch, NewJob};
pub use producer::{read_added, split_answer, Added, Call, Producer};
