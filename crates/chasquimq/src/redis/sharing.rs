//! Open connections that several share who may do the same by them: the queues of a JavaScript thread, and apart from these its workers. However many there
//! are, each server has one connection for either.

use std::{
    fmt,
    future::Future,
    sync::{
        atomic::{AtomicU64, Ordering},
        Arc, Mutex, PoisonError, Weak,
    },
};

use super::{
    link::{Link, WeakLink},
    reach::options::ConnectOptions,
};
use crate::error::{Error, Result};

/// What a connection is for. What is asked for one thing does not wait behind what is asked for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A queue's calls.
    Calls,
    /// Steps of workers, whose names it bears.
    Steps,
    /// What the server tells workers that wait, and the steps that they take then.
    News,
}

/// A server, and with whom connections to it are shared.
#[derive(Debug, Clone)]
pub struct Access {
    /// The server.
    pub options: ConnectOptions,
    /// Clones of this share them, of servers that they reach in the same way.
    pub sharing: Sharing,
}

impl Access {
    /// The same for a queue whose keys start with `base`.
    pub(crate) fn for_keys(self, base: &str) -> Self {
        let Self { options, sharing } = self;
        let options = options.for_keys(base);
        Self { options, sharing }
    }

    /// The same under a name that `CLIENT LIST` shows.
    pub(crate) fn named(mut self, name: String) -> Self {
        self.options.client_name = Some(name);
        self
    }
}

/// Of somebody who shares none.
impl From<ConnectOptions> for Access {
    fn from(options: ConnectOptions) -> Self {
        let sharing = Sharing::default();
        Self { options, sharing }
    }
}

/// Who shares connections.
#[derive(Clone, Default)]
pub struct Sharing(Arc<Mutex<Vec<Weak<Place>>>>);

/// A server, as somebody reaches it who wants one thing of it. There as long as there is a connection, or somebody waits for one.
struct Place {
    wanted: Use,
    server: Arc<ConnectOptions>,
    // how often it was tried
    tries: AtomicU64,
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    link: Option<WeakLink>,
    // what the last try came to
    error: Option<Error>,
}

impl fmt::Debug for Sharing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sharing")
    }
}

impl Sharing {
    /// The connection to a server. Of those who want it at the same time one opens it.
    /// # Errors
    /// As `open`.
    pub(super) async fn link(
        &self,
        wanted: Use,
        server: &Arc<ConnectOptions>,
        open: impl Future<Output = Result<Link>>,
    ) -> Result<Link> {
        let place = self.place(wanted, server);
        let tries = place.tries.load(Ordering::Acquire);
        let mut state = place.state.lock().await;
        if let Some(link) = state.link.as_ref().and_then(WeakLink::upgrade) {
            return Ok(link);
        }
        let is_news = place.tries.load(Ordering::Acquire) > tries;
        if let Some(error) = state.error.as_ref().filter(|_| is_news) {
            return Err(error.clone());
        }
        let opened = open.await;
        place.tries.fetch_add(1, Ordering::AcqRel);
        state.error = opened.as_ref().err().cloned();
        state.link = opened.as_ref().ok().map(|link| link.shared_by(place.clone()));
        opened
    }

    fn place(&self, wanted: Use, server: &Arc<ConnectOptions>) -> Arc<Place> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|place| place.strong_count() > 0);
        let is_same = |place: &Arc<Place>| place.wanted == wanted && place.server.reaches_the_same(server);
        if let Some(known) = places.iter().filter_map(Weak::upgrade).find(is_same) {
            return known;
        }
        let place = Arc::new(Place {
            wanted,
            server: server.clone(),
            tries: AtomicU64::new(0),
            state: tokio::sync::Mutex::default(),
        });
        places.push(Arc::downgrade(&place));
        place
    }
}
