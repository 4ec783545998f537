//! The first commands on a connection.

use std::{
    future::Future,
    io::{self, ErrorKind},
    sync::Arc,
};

use redis::RedisError;

use super::{credentials::Credentials, options::ConnectOptions};
use crate::{
    error::{Error, Result},
    redis::{
        failure::{is_broken, to_error},
        link::Link,
        wire::refusal,
    },
};

/// Fails when the server accepts the connection but does not reply in time.
pub(crate) async fn in_time<T>(
    options: &ConnectOptions,
    work: impl Future<Output = redis::RedisResult<T>>,
) -> Result<T> {
    tokio::time::timeout(options.connect_timeout, work)
        .await
        .unwrap_or_else(|_| Err(io::Error::from(ErrorKind::TimedOut).into()))
        .map_err(|error| to_error(&error, options))
}

/// Connects and logs in. Returns the server's `INFO`, too.
pub(crate) async fn log_in(options: &Arc<ConnectOptions>) -> redis::RedisResult<(Link, String)> {
    let link = open_link(options).await?;
    if let Some(name) = &options.client_name {
        // an ACL may forbid CLIENT, and the name is optional
        let _ = link.ask(redis::cmd("CLIENT").arg("SETNAME").arg(name)).await;
    }
    let info = server_info(&link).await?;
    Ok((link, info))
}

/// Connects and logs in.
pub(crate) async fn open_link(options: &Arc<ConnectOptions>) -> redis::RedisResult<Link> {
    // first: a server may end a connection that does not log in soon
    let credentials = credentials_of(options).await?;
    let link = Link::open(options.clone()).await?;
    authenticate(&link, credentials).await?;
    if options.db != 0 {
        link.ask(redis::cmd("SELECT").arg(options.db))
            .await
            .map_err(without_arguments)?;
    }
    Ok(link)
}

/// Logs in anew on a connection that is open.
pub(crate) async fn log_in_anew(link: &Link) -> redis::RedisResult<()> {
    let credentials = credentials_of(link.server()).await?;
    link.login().unblocked(authenticate(link, credentials)).await
}

async fn authenticate(
    link: &Link,
    Credentials {
        username,
        password,
        lasts,
    }: Credentials,
) -> redis::RedisResult<()> {
    let Some(password) = password else { return Ok(()) };
    let mut auth = redis::cmd("AUTH");
    if let Some(username) = username.filter(|username| !username.is_empty()) {
        auth.arg(username);
    }
    match link.ask(auth.arg(password.reveal())).await {
        Err(error) if needs_no_password(&error.to_string()) => {}
        answer => drop(answer.map_err(without_arguments)?),
    }
    link.login().note(lasts);
    Ok(())
}

/// The refusal of a command that a server does not know repeats its arguments: a password, say.
fn without_arguments(error: RedisError) -> RedisError {
    let (code, detail) = (error.code().unwrap_or("ERR"), error.detail().unwrap_or_default());
    match detail.split_once(", with args") {
        Some((short, _)) => refusal(&format!("{code} {short}")),
        None => error,
    }
}

/// Whether a login was refused because the server lets in whoever comes, as ioredis reads it: programs have a password set for other servers.
fn needs_no_password(refusal: &str) -> bool {
    refusal.contains("without any password configured for the default user")
}

async fn credentials_of(options: &ConnectOptions) -> io::Result<Credentials> {
    let Credentials {
        username,
        password,
        lasts,
    } = match &options.credentials {
        Some(credentials) => credentials.ask().await?,
        None => Credentials::default(),
    };
    Ok(Credentials {
        username: username.or_else(|| options.username.clone()),
        password: password.or_else(|| options.password.clone()),
        lasts,
    })
}

/// The server's `INFO`; empty where an ACL forbids it.
pub(crate) async fn server_info(link: &Link) -> redis::RedisResult<String> {
    let mut ask = redis::cmd("INFO");
    ask.arg("server").arg("persistence").arg("memory").arg("replication");
    let info = match link.ask(&ask).await {
        Err(error) if error.code() == Some("NOPERM") => return Ok(String::new()),
        // before 7.0 an INFO takes one section
        Err(error) if !is_broken(&error) => link.ask(redis::cmd("INFO").arg("server")).await?,
        answer => answer?,
    };
    Ok(redis::from_redis_value(info).unwrap_or_default())
}

pub(crate) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

pub(crate) fn check_version(info: &str) -> Result<()> {
    let version = field(info, "redis_version:").unwrap_or("");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major < 7 => Err(Error::ServerTooOld(version.to_owned())),
        _ => Ok(()),
    }
}
