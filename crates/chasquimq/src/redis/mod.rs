//! The Redis side: the only connection, the only caller of what runs in the server, the only reader of replies.

mod certificate;
pub mod commands;
pub mod connection;
#[cfg(unix)]
pub mod direct;
mod discovery;
mod door;
pub(crate) mod exactly_once;
mod failure;
pub(crate) mod framing;
pub(crate) mod functions;
pub mod identity;
pub mod library;
mod link;
mod login;
pub mod offer;
pub mod options;
#[cfg(unix)]
mod plain_stream;
pub mod reply;
#[cfg(unix)]
mod resp;
mod scripts;
pub mod secret;
pub(crate) mod session;
mod stream;
mod tls;
