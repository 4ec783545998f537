//! Whom a connection logs in as, where that changes from one to the next: a token ends, say.

use std::{fmt, future::Future, io, pin::Pin, sync::Arc, time::Duration};

use super::secret::Secret;

/// Whom a connection logs in as. What is left out is as the options say.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// ACL user.
    pub username: Option<String>,
    /// Password.
    pub password: Option<Secret>,
    /// For how long they count, if they end: a connection that is open by then logs in anew before.
    pub lasts: Option<Duration>,
}

type Ask = dyn Fn() -> Pin<Box<dyn Future<Output = Result<Credentials, String>> + Send>> + Send + Sync;

/// Asked of each connection that is opened.
#[derive(Clone)]
pub struct AskCredentials {
    key: Option<String>,
    ask: Arc<Ask>,
}

impl AskCredentials {
    /// `ask` gives the credentials of the next connection, or why there are none, which users read. Those of the same key answer alike: their connections
    /// are shared.
    pub fn new<F>(key: Option<String>, ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Credentials, String>> + Send + 'static,
    {
        Self {
            key,
            ask: Arc::new(move || Box::pin(ask())),
        }
    }

    pub(crate) async fn ask(&self) -> io::Result<Credentials> {
        (self.ask)().await.map_err(io::Error::other)
    }
}

impl PartialEq for AskCredentials {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ask, &other.ask) || self.key.is_some() && self.key == other.key
    }
}

impl Eq for AskCredentials {}

impl fmt::Debug for AskCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AskCredentials")
    }
}
