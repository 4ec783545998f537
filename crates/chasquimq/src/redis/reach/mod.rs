//! How a server is reached: where it is, or who tells, the way there, through TLS, and how a connection logs in.

pub(super) mod certificate;
pub(super) mod discovery;
pub mod identity;
pub(super) mod login;
pub(crate) mod names;
pub mod offer;
pub mod options;
pub mod secret;
pub(super) mod stream;
pub(super) mod tls;
pub(super) mod url;
