//! Jobs: how they are stored, and what is known of them.

pub mod deduplication;
pub mod frame;
mod json;
pub mod keep;
pub(crate) mod large;
pub mod msgpack;
pub mod options;
pub mod parent;
mod read;
pub mod record;
pub mod siblings;
pub mod vitals;

pub use parent::{Parent, Policy};
pub(crate) use read::{read_job, read_waiting};
pub use read::Job;
pub use record::Body;
pub use vitals::Vitals;
