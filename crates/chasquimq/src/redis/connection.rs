//! One connection to Redis that comes back by itself. Calls made while it is away wait for it, unless it is closed.

use std::{
    collections::HashMap,
    error::Error as StdError,
    future::Future,
    io::{self, ErrorKind},
    path::PathBuf,
    pin::pin,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        Arc, Mutex, PoisonError,
    },
    time::Duration,
};

use redis::{Cmd, RedisError, Value};
use tokio::sync::watch;

#[cfg(unix)]
use super::direct::DirectSocket;
use super::{
    discovery::{Discovery, Finder},
    link::Link,
};
use crate::{
    error::{Error, Result},
    keys::slot_of,
};

const FIRST_RETRY: Duration = Duration::from_millis(50);
// with the time that a log-in takes, work goes on within a second of the server's return
const LAST_RETRY: Duration = Duration::from_millis(500);
// a server that takes longer to answer may have been replaced
const PATIENCE: Duration = Duration::from_secs(1);
// a failover takes its time, and is not to be missed by much
const LAST_LOOK: Duration = Duration::from_millis(400);

const NO_EVICTION: &str = "noeviction";

/// Where the server is and how to log in.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Host name or address; default `127.0.0.1`.
    pub host: String,
    /// Port; default 6379.
    pub port: u16,
    /// Unix socket, instead of host and port.
    pub path: Option<PathBuf>,
    /// Who knows host and port, instead.
    pub discovery: Option<Discovery>,
    /// ACL user.
    pub username: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// Database number.
    pub db: i64,
    /// TLS, if wanted.
    pub tls: Option<TlsOptions>,
    /// Time to wait for a connection, login included.
    pub connect_timeout: Duration,
    /// What `CLIENT LIST` shows.
    pub client_name: Option<String>,
    /// Accept any server version, and any eviction policy without a word.
    pub skip_version_check: bool,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: 6379,
            path: None,
            discovery: None,
            username: None,
            password: None,
            db: 0,
            tls: None,
            connect_timeout: Duration::from_secs(10),
            client_name: None,
            skip_version_check: false,
        }
    }
}

/// TLS settings, PEM texts as Node takes them.
#[derive(Debug, Clone, Default)]
pub struct TlsOptions {
    /// Accept certificates that cannot be verified.
    pub insecure: bool,
    /// Root certificates.
    pub ca: Option<String>,
    /// Client certificate.
    pub cert: Option<String>,
    /// Client key.
    pub key: Option<String>,
    /// Name to ask for and to find in the certificate; default the host.
    pub server_name: Option<String>,
}

/// What happens to a connection, for whoever shows it to the user.
#[derive(Debug, Clone)]
pub enum ConnectionEvent {
    /// Connecting failed; it is tried again.
    Failed(Error),
    /// An open connection broke.
    Lost,
    /// A server that runs full deletes jobs: this is its eviction policy. Told once.
    Evicts(String),
}

type Listener = Arc<dyn Fn(ConnectionEvent) + Send + Sync>;

/// A connection that is made when it is first used, and made again when it breaks.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    options: Arc<ConnectOptions>,
    finder: Finder,
    listener: Listener,
    current: Mutex<Current>,
    // one task connects at a time, the others wait for it
    connecting: tokio::sync::Mutex<()>,
    closed: watch::Sender<bool>,
    told_eviction: AtomicBool,
    needs_scripts: AtomicBool,
    // what the latest server process calls itself, and how often it was another than the last
    run_id: Mutex<String>,
    servers: AtomicU64,
    // in a cluster: connections to where the keys of other queues are
    others: Mutex<HashMap<u16, Connection>>,
}

#[derive(Default)]
struct Current {
    link: Option<Link>,
    generation: u64,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// A connection that is not made yet.
    pub fn new(options: ConnectOptions, listener: impl Fn(ConnectionEvent) + Send + Sync + 'static) -> Self {
        Self::told(options, Arc::new(listener))
    }

    fn told(options: ConnectOptions, listener: Listener) -> Self {
        Self {
            shared: Arc::new(Shared {
                options: Arc::new(options),
                finder: Finder::default(),
                listener,
                current: Mutex::default(),
                connecting: tokio::sync::Mutex::new(()),
                closed: watch::Sender::new(false),
                told_eviction: AtomicBool::new(false),
                needs_scripts: AtomicBool::new(false),
                run_id: Mutex::default(),
                servers: AtomicU64::new(0),
                others: Mutex::default(),
            }),
        }
    }

    /// A connection to where the keys that start with this are: in a cluster it may be another one, which ends with this one.
    pub(crate) fn for_keys(&self, base: &str) -> Self {
        let options = &self.shared.options;
        let slots = options.slot().map(|own| (own, slot_of(base)));
        let Some((_, slot)) = slots.filter(|(own, wanted)| own != wanted) else {
            return self.clone();
        };
        let mut others = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner);
        let other = others.entry(slot).or_insert_with(|| {
            Self::told(
                ConnectOptions::clone(options).for_keys(base),
                self.shared.listener.clone(),
            )
        });
        if self.is_closed() {
            other.close();
        }
        other.clone()
    }

    /// Whether the server may be another one tomorrow.
    #[cfg(unix)]
    pub(crate) fn has_discovery(&self) -> bool {
        self.shared.options.discovery.is_some()
    }

    /// Whether the server is one of a cluster, where a script reaches one slot.
    pub(crate) fn is_of_cluster(&self) -> bool {
        self.shared.options.slot().is_some()
    }

    /// Connects once.
    /// # Errors
    /// The cause, when the server cannot be reached, refuses the login or is too old.
    pub async fn ready(&self) -> Result<()> {
        if self.current().0.is_some() {
            return Ok(());
        }
        let _connecting = self.shared.connecting.lock().await;
        if self.current().0.is_some() {
            return Ok(());
        }
        let result = self.until_closed(Box::pin(self.connect())).await?;
        if let Err(error) = &result {
            (self.shared.listener)(ConnectionEvent::Failed(error.clone()));
        }
        result
    }

    /// Sends a command; again, when the connection breaks before the answer came, or the server turns out to have become a replica.
    /// Only for commands that may be carried out twice.
    /// # Errors
    /// [`Error::Closed`] once closed, [`Error::Server`] when the server refuses, [`Error::ServerTooOld`].
    pub async fn send(&self, command: &Cmd) -> Result<Value> {
        self.send_while(command, false).await
    }

    /// The same for a command that writes whatever it finds: a replica refuses it by itself, and need not be asked what it is.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn send_write(&self, command: &Cmd) -> Result<Value> {
        self.send_while(command, true).await
    }

    async fn send_while(&self, command: &Cmd, writes: bool) -> Result<Value> {
        let mut pause = FIRST_RETRY;
        loop {
            let (link, generation) = self.connected().await?;
            match self.ask(&link, command, writes).await {
                Ok(value) => return Ok(value),
                Err(error) if is_passing(&error) => self.until_closed(tokio::time::sleep(FIRST_RETRY)).await?,
                Err(error) if self.is_elsewhere(&error) => {
                    self.look_again(&error, &link, generation);
                    self.until_closed(tokio::time::sleep(pause)).await?;
                    pause = (pause * 2).min(LAST_LOOK);
                }
                Err(error) if is_broken(&error) => self.lose(generation),
                Err(error) => return Err(to_error(&error, link.server())),
            }
        }
    }

    async fn ask(&self, link: &Link, command: &Cmd, writes: bool) -> redis::RedisResult<Value> {
        let has_discovery = self.shared.options.discovery.is_some();
        if writes && !has_discovery {
            return link.ask(command).await;
        }
        // what is rare, and large, takes no room in every call
        let asked = async {
            match writes {
                true => link.ask(command).await,
                false => link.ask_master(command).await,
            }
        };
        if !has_discovery {
            return Box::pin(asked).await;
        }
        Box::pin(self.unless_replaced(link.server(), asked))
            .await
            .unwrap_or_else(|| Err(io::Error::from(ErrorKind::TimedOut).into()))
    }

    /// Talks to a server. One that does not answer while another has taken its place, as a machine that stands still, is left: `None`.
    async fn unless_replaced<T>(&self, server: &ConnectOptions, talk: impl Future<Output = T>) -> Option<T> {
        if self.shared.options.discovery.is_none() {
            return Some(talk.await);
        }
        let mut talk = pin!(talk);
        loop {
            let replaced = async {
                tokio::time::sleep(PATIENCE).await;
                self.is_replaced(server).await
            };
            tokio::select! {
                biased;
                done = &mut talk => return Some(done),
                is_replaced = replaced => if is_replaced {
                    return None;
                },
            }
        }
    }

    async fn is_replaced(&self, server: &ConnectOptions) -> bool {
        match self.shared.finder.find(&self.shared.options).await {
            Ok(found) => (&found.host, found.port) != (&server.host, server.port),
            // nobody knows of another
            Err(_) => false,
        }
    }

    /// Sends a command once, with no second try.
    /// # Errors
    /// As [`Connection::send`], and [`Error::Connection`] when the connection breaks meanwhile.
    pub async fn send_once(&self, command: &Cmd) -> Result<Value> {
        let (link, generation) = self.connected().await?;
        link.ask_master(command)
            .await
            .map_err(|error| self.failed_once(&error, &link, generation))
    }

    /// Sends commands in one go, once. An answer may be an error of its own.
    /// # Errors
    /// As [`Connection::send_once`].
    pub async fn send_pipeline_once(&self, pipeline: &redis::Pipeline, count: usize) -> Result<Vec<Value>> {
        let (link, generation) = self.connected().await?;
        link.ask_all(pipeline, count)
            .await
            .map_err(|error| self.failed_once(&error, &link, generation))
    }

    fn failed_once(&self, error: &RedisError, link: &Link, generation: u64) -> Error {
        if self.is_closed() {
            return Error::Closed;
        }
        let is_elsewhere = self.is_elsewhere(error);
        if is_elsewhere {
            self.look_again(error, link, generation);
        } else if is_broken(error) {
            self.lose(generation);
        }
        match to_error(error, link.server()) {
            // the same call works once the server is ready, or found
            Error::Server(message) if is_elsewhere || is_passing(error) => Error::Connection { message, code: None },
            other => other,
        }
    }

    /// Whether this is not the server to ask (any more): a replica, or not the one that serves the slot.
    fn is_elsewhere(&self, error: &RedisError) -> bool {
        match error.code() {
            // UNBLOCKED: a wait ends because a master becomes a replica
            Some("READONLY" | "UNBLOCKED") => true,
            Some("MOVED" | "CLUSTERDOWN") => self.is_of_cluster(),
            _ => false,
        }
    }

    /// Leaves the server, to look for the right one. In a cluster that is nothing to be told.
    fn look_again(&self, error: &RedisError, link: &Link, generation: u64) {
        let discovery = self.shared.options.discovery.as_ref();
        let Some(lost) = self.take(generation) else { return };
        if let Some(discovery) = discovery {
            self.shared.finder.follow(error, link.server(), discovery);
        }
        lost.cut();
        if !self.is_of_cluster() && !self.is_closed() {
            (self.shared.listener)(ConnectionEvent::Lost);
            (self.shared.listener)(ConnectionEvent::Failed(to_error(error, link.server())));
        }
    }

    /// Whether the server, or what it allows this user, knows no functions.
    pub(super) fn needs_scripts(&self) -> bool {
        self.shared.needs_scripts.load(Ordering::Relaxed)
    }

    /// From now on calls go as scripts.
    pub(super) fn use_scripts(&self) {
        self.shared.needs_scripts.store(true, Ordering::Relaxed);
    }

    /// Closes for good. Calls under way, and later ones, end with [`Error::Closed`].
    pub fn close(&self) {
        self.shared.closed.send_replace(true);
        self.discard_connection();
        let others = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner);
        for other in others.values() {
            other.close();
        }
    }

    /// True after [`Connection::close`].
    pub fn is_closed(&self) -> bool {
        *self.shared.closed.borrow()
    }

    /// True while there is a connection, as far as is known.
    pub fn is_connected(&self) -> bool {
        self.current().0.is_some()
    }

    /// How often the server was another process than that of the connection before, or may have been.
    pub(crate) fn servers(&self) -> u64 {
        self.shared.servers.load(Ordering::Acquire)
    }

    /// Drops the connection, for instance because it answers no more; the next call makes another.
    pub fn drop_connection(&self) {
        let generation = self.current().1;
        self.lose(generation);
    }

    /// A bare socket to the same server, logged in; `None` with TLS, or once closed. Nobody notices on it that the server
    /// stands still.
    /// # Errors
    /// As [`DirectSocket::open`].
    #[cfg(unix)]
    pub async fn open_direct(&self) -> Result<Option<DirectSocket>> {
        if self.shared.options.tls.is_some() || self.is_closed() {
            return Ok(None);
        }
        let server = match self.shared.options.discovery {
            None => self.shared.options.clone(),
            Some(_) => self.connected().await?.0.server().clone(),
        };
        let opened = tokio::task::spawn_blocking(move || DirectSocket::open(&server)).await;
        opened.unwrap_or(Err(Error::Closed)).map(Some)
    }

    /// Breaks the connection off on purpose, with all that is under way on it; nobody is told.
    pub fn discard_connection(&self) {
        if let Some(link) = self
            .shared
            .current
            .lock()
            .ok()
            .and_then(|mut current| current.link.take())
        {
            link.cut();
        }
    }

    fn current(&self) -> (Option<Link>, u64) {
        self.shared
            .current
            .lock()
            .map_or((None, 0), |current| (current.link.clone(), current.generation))
    }

    async fn connected(&self) -> Result<(Link, u64)> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        if let (Some(link), generation) = self.current() {
            return Ok((link, generation));
        }
        let _connecting = self.shared.connecting.lock().await;
        let mut pause = FIRST_RETRY;
        loop {
            if let (Some(link), generation) = self.current() {
                return Ok((link, generation));
            }
            if let Err(error) = self.until_closed(Box::pin(self.connect())).await? {
                let is_unfit = matches!(error, Error::ServerTooOld(_));
                (self.shared.listener)(ConnectionEvent::Failed(error.clone()));
                if is_unfit {
                    return Err(error);
                }
                self.until_closed(tokio::time::sleep(pause)).await?;
                pause = (pause * 2).min(LAST_RETRY);
            }
        }
    }

    async fn until_closed<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let mut closed = self.shared.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(Error::Closed),
            done = work => Ok(done),
        }
    }

    async fn connect(&self) -> Result<()> {
        let options = self.shared.finder.find(&self.shared.options).await?;
        let connected = self.unless_replaced(&options, self.connect_to(&options)).await;
        let connected =
            connected.unwrap_or_else(|| Err(to_error(&io::Error::from(ErrorKind::TimedOut).into(), &options)));
        if connected.is_err() {
            self.shared.finder.distrust();
        }
        connected
    }

    async fn connect_to(&self, options: &Arc<ConnectOptions>) -> Result<()> {
        let (link, mut info) = in_time(options, log_in(options)).await?;
        // a server that comes back reads its data first, and takes no command meanwhile
        while info.contains("\nloading:1") {
            tokio::time::sleep(FIRST_RETRY).await;
            info = in_time(options, server_info(&link)).await?;
        }
        match field(&info, "role:") {
            // a replica in a cluster points to its master by itself
            Some("master") if !self.is_of_cluster() => link.note_master(),
            // a sentinel may not have heard yet
            Some(role) if role != "master" && self.shared.options.wants_master() => {
                let message = format!("{}:{} is not the master", options.host, options.port);
                return Err(Error::Connection { message, code: None });
            }
            _ => {}
        }
        if !options.skip_version_check {
            check_version(&info)?;
            let policy = field(&info, "maxmemory_policy:").unwrap_or(NO_EVICTION);
            if policy != NO_EVICTION && !self.shared.told_eviction.swap(true, Ordering::Relaxed) {
                (self.shared.listener)(ConnectionEvent::Evicts(policy.to_owned()));
            }
        }
        if let Ok(mut current) = self.shared.current.lock() {
            self.note_server(field(&info, "run_id:").unwrap_or_default(), current.generation > 0);
            current.link = Some(link);
            current.generation += 1;
        }
        Ok(())
    }

    fn note_server(&self, run_id: &str, had_another: bool) {
        if let Ok(mut known) = self.shared.run_id.lock() {
            // one that says nothing of itself may be another
            if had_another && (run_id.is_empty() || *known != run_id) {
                self.shared.servers.fetch_add(1, Ordering::AcqRel);
            }
            run_id.clone_into(&mut known);
        }
    }

    /// The connection of this generation, which is then no more in use.
    fn take(&self, generation: u64) -> Option<Link> {
        let mut current = self.shared.current.lock().ok()?;
        let is_current = current.generation == generation;
        current.link.take_if(|_| is_current)
    }

    fn lose(&self, generation: u64) {
        if let Some(link) = self.take(generation) {
            link.cut();
            if !self.is_closed() {
                (self.shared.listener)(ConnectionEvent::Lost);
            }
        }
    }
}

/// A server that takes the connection and says nothing is as bad as none.
pub(super) async fn in_time<T>(
    options: &ConnectOptions,
    work: impl Future<Output = redis::RedisResult<T>>,
) -> Result<T> {
    tokio::time::timeout(options.connect_timeout, work)
        .await
        .unwrap_or_else(|_| Err(io::Error::from(ErrorKind::TimedOut).into()))
        .map_err(|error| to_error(&error, options))
}

/// Connects and logs in. Gives what the server says of itself, too.
async fn log_in(options: &Arc<ConnectOptions>) -> redis::RedisResult<(Link, String)> {
    let link = open_link(options).await?;
    if let Some(command) = set_name(options) {
        // a server may forbid CLIENT; the name is a comfort only
        let _ = link.ask(&command).await;
    }
    let info = server_info(&link).await?;
    Ok((link, info))
}

/// Connects and logs in.
pub(super) async fn open_link(options: &Arc<ConnectOptions>) -> redis::RedisResult<Link> {
    let link = Link::open(options.clone()).await?;
    for command in login(options) {
        link.ask(&command).await?;
    }
    Ok(link)
}

/// The commands that log in and choose the database.
pub(super) fn login(options: &ConnectOptions) -> Vec<Cmd> {
    let mut commands = Vec::new();
    if let Some(password) = &options.password {
        let mut auth = redis::cmd("AUTH");
        if let Some(username) = options.username.as_ref().filter(|username| !username.is_empty()) {
            auth.arg(username);
        }
        auth.arg(password);
        commands.push(auth);
    }
    if options.db != 0 {
        let mut select = redis::cmd("SELECT");
        select.arg(options.db);
        commands.push(select);
    }
    commands
}

/// The command that names the connection, if it has a name.
pub(super) fn set_name(options: &ConnectOptions) -> Option<Cmd> {
    let name = options.client_name.as_ref()?;
    let mut command = redis::cmd("CLIENT");
    command.arg("SETNAME").arg(name);
    Some(command)
}

/// What the server says of itself; nothing where it forbids this user to ask.
async fn server_info(link: &Link) -> redis::RedisResult<String> {
    let mut ask = redis::cmd("INFO");
    ask.arg("server").arg("persistence").arg("memory").arg("replication");
    let info = match link.ask(&ask).await {
        Err(error) if error.code() == Some("NOPERM") => return Ok(String::new()),
        // before 7.0 there is one section an INFO
        Err(error) if !is_broken(&error) => link.ask(redis::cmd("INFO").arg("server")).await?,
        answer => answer?,
    };
    Ok(redis::from_redis_value(info).unwrap_or_default())
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn check_version(info: &str) -> Result<()> {
    let version = field(info, "redis_version:").unwrap_or("");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major < 7 => Err(Error::ServerTooOld(version.to_owned())),
        _ => Ok(()),
    }
}

// the server is there, but not for commands yet; ASK: the queue is being moved to another server, key by key, and no script may see
// half of it
fn is_passing(error: &RedisError) -> bool {
    matches!(
        error.code(),
        Some("LOADING" | "TRYAGAIN" | "BUSY" | "MASTERDOWN" | "ASK")
    )
}

// the connection is of no use any more
fn is_broken(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.is_unrecoverable_error()
}

fn to_error(error: &RedisError, options: &ConnectOptions) -> Error {
    let place = match &options.path {
        Some(path) => path.display().to_string(),
        None => format!("{}:{}", options.host, options.port),
    };
    if options.path.as_ref().is_some_and(|path| !path.exists()) {
        return Error::Connection {
            message: format!("connect ENOENT {place}"),
            code: Some("ENOENT"),
        };
    }
    if let Some((code, message)) = io_cause(error).and_then(|cause| in_words_of_node(cause, &options.host, &place)) {
        return Error::Connection {
            message,
            code: Some(code),
        };
    }
    if error.is_io_error() || error.is_connection_dropped() {
        return Error::Connection {
            message: format!("{error} ({place})"),
            code: None,
        };
    }
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => Error::Server(format!("{code} {detail}")),
        _ => Error::Server(error.to_string()),
    }
}

/// The library shares its causes.
fn io_cause(error: &RedisError) -> Option<&io::Error> {
    let cause = error.source()?;
    match cause.downcast_ref::<Arc<dyn StdError + Send + Sync>>() {
        Some(shared) => shared.downcast_ref(),
        None => cause.downcast_ref(),
    }
}

/// Node's code for a failure, and its message.
fn in_words_of_node(cause: &io::Error, host: &str, place: &str) -> Option<(&'static str, String)> {
    let connecting = |code| Some((code, format!("connect {code} {place}")));
    let talking = |doing: &str, code| Some((code, format!("{doing} {code}")));
    match cause.kind() {
        ErrorKind::ConnectionRefused => connecting("ECONNREFUSED"),
        ErrorKind::HostUnreachable => connecting("EHOSTUNREACH"),
        ErrorKind::NetworkUnreachable => connecting("ENETUNREACH"),
        ErrorKind::PermissionDenied => connecting("EACCES"),
        // as ioredis says it
        ErrorKind::TimedOut | ErrorKind::WouldBlock => talking("connect", "ETIMEDOUT"),
        ErrorKind::BrokenPipe if cause.raw_os_error().is_some() => talking("write", "EPIPE"),
        // the library says so, too, of a connection that ends before the answer
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => talking("read", "ECONNRESET"),
        _ if cause.to_string().starts_with("failed to lookup address") => {
            let is_passing = cause.to_string().contains("Temporary failure");
            let code = if is_passing { "EAI_AGAIN" } else { "ENOTFOUND" };
            Some((code, format!("getaddrinfo {code} {host}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cause: io::Error) -> (Option<&'static str>, String) {
        match to_error(&RedisError::from(cause), &ConnectOptions::default()) {
            Error::Connection { message, code } => (code, message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn failures_of_the_network_are_told_as_node_tells_them() {
        let place = "127.0.0.1:6379";
        for (kind, code, message) in [
            (
                ErrorKind::ConnectionRefused,
                "ECONNREFUSED",
                format!("connect ECONNREFUSED {place}"),
            ),
            (
                ErrorKind::HostUnreachable,
                "EHOSTUNREACH",
                format!("connect EHOSTUNREACH {place}"),
            ),
            (
                ErrorKind::NetworkUnreachable,
                "ENETUNREACH",
                format!("connect ENETUNREACH {place}"),
            ),
            (ErrorKind::TimedOut, "ETIMEDOUT", "connect ETIMEDOUT".to_owned()),
            (ErrorKind::ConnectionReset, "ECONNRESET", "read ECONNRESET".to_owned()),
            (ErrorKind::UnexpectedEof, "ECONNRESET", "read ECONNRESET".to_owned()),
        ] {
            assert_eq!(told(kind.into()), (Some(code), message));
        }
        #[cfg(unix)]
        assert_eq!(
            told(io::Error::from_raw_os_error(32)),
            (Some("EPIPE"), "write EPIPE".to_owned())
        );
    }

    #[test]
    fn a_host_without_address_is_told_as_node_tells_it() {
        let unknown = io::Error::other("failed to lookup address information: Name or service not known");
        assert_eq!(
            told(unknown),
            (Some("ENOTFOUND"), "getaddrinfo ENOTFOUND 127.0.0.1".to_owned())
        );
        let later = io::Error::other("failed to lookup address information: Temporary failure in name resolution");
        assert_eq!(told(later).0, Some("EAI_AGAIN"));
    }

    #[test]
    fn what_node_has_no_word_for_is_told_as_it_is() {
        let (code, message) = told(io::Error::new(ErrorKind::InvalidData, "bad certificate"));
        assert_eq!(code, None);
        assert!(message.contains("bad certificate"), "{message}");
    }
    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn the_pause_before_it_is_tried_again_grows_to_half_a_second_and_no_further() {
        let began = tokio::time::Instant::now();
        let tries = Arc::new(Mutex::new(Vec::new()));
        let options = ConnectOptions {
            path: Some("/there/is/no/redis.sock".into()),
            ..ConnectOptions::default()
        };
        let noted = tries.clone();
        let connection = Connection::new(options, move |_| {
            noted.lock().expect("tries").push(began.elapsed().as_millis());
        });
        let caller = connection.clone();
        let call = tokio::spawn(async move { caller.send(&redis::cmd("PING")).await });
        tokio::time::sleep(Duration::from_secs(3)).await;
        connection.close();
        assert!(matches!(call.await, Ok(Err(Error::Closed))));
        // the clock is the test's own
        let tries = tries.lock().expect("tries");
        let pauses: Vec<_> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 500, 500, 500, 500]);
    }
}
