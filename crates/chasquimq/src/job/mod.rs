//! Jobs: how they are stored, and what is known of them.

pub(crate) mod apart;
pub mod deduplication;
mod expiry;
pub mod frame;
pub(crate) mod group;
mod json;
pub mod keep;
pub mod key_limit;
pub(crate) mod large;
pub mod msgpack;
pub mod options;
pub mod parent;
pub mod parent_header;
mod read;
pub mod record;
pub mod state_fields;
pub(crate) mod whole;

pub use parent::{Parent, Policy};
pub use read::Job;
pub(crate) use read::{read_job, read_waiting};
pub use record::Body;
pub use state_fields::StateFields;
