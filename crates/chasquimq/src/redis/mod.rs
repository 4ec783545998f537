//! The Redis side: the only connection, the only caller of what runs in the server, the only reader of replies.

mod certificate;
pub mod commands;
pub mod connection;
mod discovery;
pub(crate) mod exactly_once;
mod failure;
pub(crate) mod framing;
pub(crate) mod functions;
pub mod identity;
pub mod library;
mod link;
mod login;
pub(crate) mod names;
pub mod offer;
pub mod options;
pub mod reply;
mod resp;
mod scripts;
pub mod secret;
pub(crate) mod session;
pub mod sharing;
mod socket;
mod stream;
mod tls;
mod transport;
mod url;
pub mod wire;
