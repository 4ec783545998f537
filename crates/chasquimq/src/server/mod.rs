//! The Redis side: the only connection, the only script runner, the only reply reader.

pub mod conn;
#[cfg(unix)]
pub mod direct;
pub mod discovery;
mod link;
pub(crate) mod once;
pub mod reply;
pub mod script;
mod stream;
