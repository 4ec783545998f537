//! Keeps one link to the server: opens it when it is first needed, and again when it breaks or another server takes over.

mod anew;
mod replaced;

use std::{
    future::Future,
    io::{self, ErrorKind},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        Arc, Mutex, Weak,
    },
    time::Duration,
};

use redis::RedisError;
use tokio::{sync::watch, time::Instant};

use super::{
    call::{
        functions::{look, Found, Functions, LATELY},
        scripts::LIBRARY_NAME,
    },
    failure::to_error,
    link::{Link, Named},
    reach::{
        discovery::Finder,
        login::{check_version, field, in_time, log_in, server_info},
        options::ConnectOptions,
    },
    sharing::{Access, Sharing, Use},
};
use crate::error::{Error, Result};

pub(super) const FIRST_RETRY: Duration = Duration::from_millis(50);
// with a login on top, work resumes within a second of the server's return
const LAST_RETRY: Duration = Duration::from_millis(500);

const NO_EVICTION: &str = "noeviction";

/// What happens to a connection.
#[derive(Debug, Clone)]
pub enum ConnectionEvent {
    /// Connecting failed; the connection retries.
    Failed(Error),
    /// It is not open any more, or still not: it broke, or connecting failed.
    Closed,
    /// The server's eviction policy, which deletes jobs when memory is full. Sent once.
    Evicts(String),
    /// The functions that the server has under the names of ours are somebody else's: they are not called. Has the library's name. Sent once.
    ForeignLibrary(&'static str),
}

pub(super) type Listener = Arc<dyn Fn(ConnectionEvent) + Send + Sync>;

/// The current link, and what it takes to open the next.
pub(super) struct Session {
    pub(super) options: Arc<ConnectOptions>,
    pub(super) listener: Listener,
    // with whom it shares its links, who want the same
    sharing: Sharing,
    wanted: Option<Use>,
    // what such a link is called for it
    name: Option<String>,
    // for what must not keep it alive
    own: Weak<Session>,
    finder: Finder,
    // where the server was found when somebody waited for it last
    looked: tokio::sync::Mutex<Option<(Instant, Option<Arc<ConnectOptions>>)>>,
    current: Mutex<Current>,
    // one task connects at a time while the others wait
    connecting: tokio::sync::Mutex<()>,
    closed: watch::Sender<bool>,
    warned_of_eviction: AtomicBool,
    pub(super) functions: Functions,
    // the run id of the latest server process, and how often it changed
    run_id: Mutex<String>,
    servers: AtomicU64,
}

#[derive(Default)]
struct Current {
    link: Option<Link>,
    named: Option<Named>,
    generation: u64,
}

impl Session {
    /// A session without a link. Its links are others', too, who want the same, unless it wants nothing that others do.
    pub(super) fn new(access: Access, wanted: Option<Use>, listener: Listener) -> Arc<Self> {
        let Access { mut options, sharing } = access;
        let name = options.client_name.take_if(|_| wanted == Some(Use::Steps));
        Arc::new_cyclic(|own| Self {
            options: Arc::new(options),
            listener,
            sharing,
            wanted,
            name,
            own: own.clone(),
            finder: Finder::default(),
            looked: tokio::sync::Mutex::default(),
            current: Mutex::default(),
            connecting: tokio::sync::Mutex::new(()),
            closed: watch::Sender::new(false),
            warned_of_eviction: AtomicBool::new(false),
            functions: Functions::default(),
            run_id: Mutex::default(),
            servers: AtomicU64::new(0),
        })
    }

    /// One that wants the same of the server of these options.
    pub(super) fn beside(&self, options: ConnectOptions) -> Arc<Self> {
        let sharing = self.sharing.clone();
        Self::new(Access { options, sharing }, self.wanted, self.listener.clone())
    }

    /// Connects once.
    pub(super) async fn ready(&self) -> Result<()> {
        if self.current().0.is_some() {
            return Ok(());
        }
        let _connecting = self.connecting.lock().await;
        if self.current().0.is_some() {
            return Ok(());
        }
        let result = self.until_closed(Box::pin(self.connect())).await?;
        if let Err(error) = &result {
            self.tell_failure(error);
        }
        result
    }

    fn tell_failure(&self, error: &Error) {
        (self.listener)(ConnectionEvent::Failed(error.clone()));
        (self.listener)(ConnectionEvent::Closed);
    }

    /// The link, if there is one, and its generation.
    pub(super) fn current(&self) -> (Option<Link>, u64) {
        self.current
            .lock()
            .map_or((None, 0), |current| (current.link.clone(), current.generation))
    }

    /// The link and its generation; connects if there is none.
    /// # Errors
    /// [`Error::Closed`], [`Error::ServerTooOld`].
    pub(super) async fn connected(&self) -> Result<(Link, u64)> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        // those that waited for the link use it before later callers, however fast these are
        let _connecting = match self.connecting.try_lock() {
            Ok(connecting) => connecting,
            Err(_) => self.connecting.lock().await,
        };
        let mut pause = FIRST_RETRY;
        loop {
            if let (Some(link), generation) = self.current() {
                if !link.is_over() {
                    return Ok((link, generation));
                }
                self.lose(generation);
            }
            if let Err(error) = self.until_closed(Box::pin(self.connect())).await? {
                let is_unfit = matches!(error, Error::ServerTooOld(_));
                self.tell_failure(&error);
                if is_unfit {
                    return Err(error);
                }
                self.until_closed(tokio::time::sleep(pause)).await?;
                pause = (pause * 2).min(LAST_RETRY);
            }
        }
    }

    /// Runs `work`, but fails with [`Error::Closed`] as soon as the session closes.
    pub(super) async fn until_closed<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let mut closed = self.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(Error::Closed),
            done = work => Ok(done),
        }
    }

    async fn connect(&self) -> Result<()> {
        let options = self.finder.find(&self.options).await?;
        let connected = self.unless_replaced(&options, self.connect_to(&options)).await;
        let connected =
            connected.unwrap_or_else(|| Err(to_error(&io::Error::from(ErrorKind::TimedOut).into(), &options)));
        if connected.is_err() {
            self.finder.distrust();
        }
        connected
    }

    async fn connect_to(&self, options: &Arc<ConnectOptions>) -> Result<()> {
        let link = match self.wanted {
            Some(wanted) => self.sharing.link(wanted, options, self.open(options)).await?,
            None => self.open(options).await?,
        };
        let info = link.info();
        match field(info, "role:") {
            // a sentinel may not know of the failover yet
            Some(role) if role != "master" && self.options.wants_master() => {
                let message = format!("{}:{} is not the master", options.host, options.port);
                return Err(Error::Connection { message, code: None });
            }
            _ => {}
        }
        if !options.skip_version_check {
            check_version(info)?;
            let policy = field(info, "maxmemory_policy:").unwrap_or(NO_EVICTION);
            if policy != NO_EVICTION && !self.warned_of_eviction.swap(true, Ordering::Relaxed) {
                (self.listener)(ConnectionEvent::Evicts(policy.to_owned()));
            }
        }
        let run_id = field(info, "run_id:").unwrap_or_default();
        let found = in_time(options, look(&link, run_id, LATELY)).await?;
        let named = match &self.name {
            Some(name) => Some(in_time(options, async { Ok(link.named(name).await) }).await?),
            None => None,
        };
        self.tell_foreign(self.functions.opened(found));
        if let Ok(mut current) = self.current.lock() {
            self.note_server(run_id, current.generation > 0);
            current.generation += 1;
            self.watch(&link, current.generation);
            (current.link, current.named) = (Some(link), named);
        }
        Ok(())
    }

    /// Opens a link.
    async fn open(&self, options: &Arc<ConnectOptions>) -> Result<Link> {
        let (link, mut info) = in_time(options, log_in(options)).await?;
        // a server that restarts loads its data first and refuses commands meanwhile
        while info.contains("\nloading:1") {
            tokio::time::sleep(FIRST_RETRY).await;
            info = in_time(options, server_info(&link)).await?;
        }
        // in a cluster a replica redirects to its master
        if field(&info, "role:") == Some("master") && self.options.slot().is_none() {
            link.note_master();
        }
        link.note_info(info);
        self.keep_logged_in(&link);
        if self.wanted == Some(Use::News) {
            in_time(options, link.ask_for_news()).await?;
        }
        Ok(link)
    }

    /// Has it told that the link of this generation broke, though no call is under way.
    fn watch(&self, link: &Link, generation: u64) {
        let (own, ended) = (self.own.clone(), link.ended());
        tokio::spawn(async move {
            ended.await;
            if let Some(session) = own.upgrade() {
                session.lose(generation);
            }
        });
    }

    /// Looks at the functions of the server, unless that was done so lately. A link that breaks meanwhile tells nothing.
    pub(super) async fn look_at_functions(&self, link: &Link, lately: Duration) {
        let run_id = self.run_id.lock().map(|known| known.clone()).unwrap_or_default();
        if let Ok(found) = look(link, &run_id, lately).await {
            self.found(found);
        }
    }

    /// Notes what the server has of the library.
    pub(super) fn found(&self, found: Found) {
        self.tell_foreign(self.functions.found(found));
    }

    fn tell_foreign(&self, is_news: bool) {
        if is_news {
            (self.listener)(ConnectionEvent::ForeignLibrary(LIBRARY_NAME));
        }
    }

    fn note_server(&self, run_id: &str, had_another: bool) {
        if let Ok(mut known) = self.run_id.lock() {
            // without a run id it may be another process
            if had_another && (run_id.is_empty() || *known != run_id) {
                self.servers.fetch_add(1, Ordering::AcqRel);
            }
            run_id.clone_into(&mut known);
        }
    }

    /// Whether the error says that another server is the right one: this is a replica, or does not serve the slot.
    pub(super) fn is_elsewhere(&self, error: &RedisError) -> bool {
        match error.code() {
            // UNBLOCKED: a blocking call ended because the master became a replica
            Some("READONLY" | "UNBLOCKED") => true,
            Some("MOVED" | "CLUSTERDOWN") => self.options.slot().is_some(),
            _ => false,
        }
    }

    /// Drops the link in order to find the right server. In a cluster this is normal and sends no event.
    pub(super) fn look_again(&self, error: &RedisError, link: &Link, generation: u64) {
        let discovery = self.options.discovery.as_ref();
        let Some(lost) = self.take(generation) else { return };
        if let Some(discovery) = discovery {
            self.finder.follow(error, link.server(), discovery);
            if error.redirect_node().is_none() {
                // a node that is cut off from the others names itself
                self.finder.distrust();
            }
        }
        match error.redirect_node() {
            // that of some slots is elsewhere
            Some(_) => lost.leave(),
            None => lost.cut(),
        }
        if self.options.slot().is_none() && !self.is_closed() {
            (self.listener)(ConnectionEvent::Closed);
            (self.listener)(ConnectionEvent::Failed(to_error(error, link.server())));
        }
    }

    /// Takes out the link of this generation.
    fn take(&self, generation: u64) -> Option<Link> {
        let mut current = self.current.lock().ok()?;
        if current.generation != generation {
            return None;
        }
        current.named = None;
        current.link.take()
    }

    /// Drops the link of this generation, which broke.
    pub(super) fn lose(&self, generation: u64) {
        if let Some(link) = self.take(generation) {
            link.cut();
            if self.is_closed() {
                return;
            }
            (self.listener)(ConnectionEvent::Closed);
            // a server that went away comes back; one that is none does not
            if let Some(fault) = link.fault() {
                (self.listener)(ConnectionEvent::Failed(to_error(&fault, link.server())));
            }
        }
    }

    /// Drops the link without an event: with all calls in flight, unless it is others', too.
    pub(super) fn discard(&self) {
        let dropped = self.current.lock().map(|mut current| {
            let Current { link, named, .. } = &mut *current;
            (link.take(), named.take())
        });
        if let Ok((Some(link), _)) = dropped {
            link.leave();
        }
    }

    /// Has the server forget the name that the link bears for this session.
    pub(super) async fn forget_name(&self) {
        let named = self.current.lock().ok().and_then(|mut current| current.named.take());
        if let Some(named) = named {
            named.forget().await;
        }
    }

    /// Closes for good.
    pub(super) fn close(&self) {
        self.closed.send_replace(true);
        self.discard();
    }

    /// True after [`Session::close`].
    pub(super) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// How often the link reached another server process than before, or may have.
    pub(super) fn servers(&self) -> u64 {
        self.servers.load(Ordering::Acquire)
    }
}
