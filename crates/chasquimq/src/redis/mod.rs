//! The Redis side: the only connection, the only caller of what runs in the server, the only reader of replies.

pub mod call;
pub mod connection;
mod failure;
pub(crate) mod gathered;
mod link;
pub mod reach;
pub(crate) mod session;
pub mod sharing;
mod socket;
mod states;
pub mod wire;
