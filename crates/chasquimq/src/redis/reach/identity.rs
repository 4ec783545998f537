//! Whether a server is who it should be, where the caller decides that instead of the name in its certificate.

use std::{fmt, future::Future, io, pin::Pin, sync::Arc};

use super::certificate::{code_named, Refused};

/// What a check comes to.
pub type Verdict = Result<(), IdentityRefusal>;

type Ask = dyn Fn(String, Vec<Vec<u8>>) -> Pin<Box<dyn Future<Output = Verdict> + Send>> + Send + Sync;

/// Asked of each connection, once an authority that is trusted has vouched for the server's certificate, and before anything is sent.
#[derive(Clone)]
pub struct IdentityCheck {
    number: Option<u32>,
    ask: Arc<Ask>,
}

/// Why a server is not who it should be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdentityRefusal {
    /// What users read.
    pub message: String,
    /// Told to users where it is one of Node's.
    pub code: Option<String>,
}

impl IdentityCheck {
    /// `ask` gets the name that a certificate had to be for, and what the server has shown, DER: its certificate, then those of its authorities.
    /// Checks of the same number decide alike.
    pub fn new<F>(number: Option<u32>, ask: impl Fn(String, Vec<Vec<u8>>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        Self {
            number,
            ask: Arc::new(move |host, chain| Box::pin(ask(host, chain))),
        }
    }

    pub(crate) async fn ask(&self, host: &str, chain: Vec<Vec<u8>>) -> io::Result<()> {
        let verdict = (self.ask)(host.to_owned(), chain).await;
        verdict.map_err(|IdentityRefusal { message, code }| {
            let cause = io::Error::other(message);
            match code.as_deref().and_then(code_named) {
                Some(code) => io::Error::other(Refused { code, cause }),
                None => cause,
            }
        })
    }
}

impl PartialEq for IdentityCheck {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ask, &other.ask) || self.number.is_some() && self.number == other.number
    }
}

impl Eq for IdentityCheck {}

impl fmt::Debug for IdentityCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("IdentityCheck")
    }
}
