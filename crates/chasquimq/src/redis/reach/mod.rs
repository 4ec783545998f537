//! How a server is reached: where it is, or who tells, the way there, through TLS, and how a connection logs in.

pub(super) mod certificate;
pub(crate) mod client_names;
pub mod credentials;
pub(super) mod dial;
pub(super) mod discovery;
pub mod identity;
pub(super) mod login;
pub(super) mod login_end;
pub mod options;
pub mod secret;
pub(super) mod tls;
pub mod tls_offer;
pub(super) mod url;
