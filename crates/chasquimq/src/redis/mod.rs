//! The Redis side: the only connection, the only caller of what runs in the server, the only reader of replies.

pub mod connection;
#[cfg(unix)]
pub mod direct;
pub mod discovery;
pub(crate) mod exactly_once;
pub mod library;
mod link;
pub mod reply;
mod stream;
