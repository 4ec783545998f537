//! Where the server is, from what a program has at hand: a URL.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use super::{
    options::{ConnectOptions, TlsOptions},
    secret::Secret,
};
use crate::error::Error;

/// Reads `redis://[user:password@]host[:port][/db]`, the same with `rediss://` for TLS (`#insecure` at its end takes any certificate), or
/// `unix:///path[?db=1&user=..&pass=..]`.
impl TryFrom<&str> for ConnectOptions {
    type Error = Error;

    fn try_from(url: &str) -> Result<Self, Error> {
        let (plain, tls) = match url.strip_prefix("rediss://") {
            Some(rest) => {
                let accepts_any = rest.strip_suffix("#insecure");
                let tls = TlsOptions {
                    insecure: accepts_any.is_some(),
                    ..TlsOptions::default()
                };
                (format!("redis://{}", accepts_any.unwrap_or(rest)), Some(tls))
            }
            None => (url.to_owned(), None),
        };
        let info: ConnectionInfo = plain
            .into_connection_info()
            .map_err(|error| Error::Invalid(format!("Redis URL: {error}")))?;
        let login = info.redis_settings();
        let mut options = ConnectOptions {
            username: login.username().map(str::to_owned),
            password: login.password().map(Secret::from),
            db: login.db(),
            tls,
            ..ConnectOptions::default()
        };
        match info.addr() {
            ConnectionAddr::Tcp(host, port) => (options.host, options.port) = (host.clone(), *port),
            ConnectionAddr::Unix(path) => options.path = Some(path.clone()),
            other => return Err(Error::Invalid(format!("Redis URL: {other} is not supported"))),
        }
        Ok(options)
    }
}

/// As [`ConnectOptions::try_from`] a `&str`.
impl TryFrom<&String> for ConnectOptions {
    type Error = Error;

    fn try_from(url: &String) -> Result<Self, Error> {
        Self::try_from(url.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_url_names_host_port_login_and_database() {
        let options = ConnectOptions::try_from("redis://me:p%40ss@db.example:7000/3").expect("options");
        assert_eq!(
            (options.host.as_str(), options.port, options.db),
            ("db.example", 7000, 3)
        );
        assert_eq!(options.username.as_deref(), Some("me"));
        assert_eq!(options.password.as_ref().map(Secret::reveal), Some("p@ss"));
        assert!(options.tls.is_none());
    }

    #[test]
    fn rediss_means_tls_and_unix_a_socket() {
        let secure = ConnectOptions::try_from("rediss://db.example").expect("options");
        assert!(secure.tls.is_some_and(|tls| !tls.insecure));
        let any = ConnectOptions::try_from("rediss://db.example:7000/2#insecure").expect("options");
        assert_eq!(
            (any.port, any.db, any.tls.is_some_and(|tls| tls.insecure)),
            (7000, 2, true)
        );
        let socket = ConnectOptions::try_from("unix:///run/redis.sock?db=2").expect("options");
        assert_eq!(
            (socket.path.as_deref(), socket.db),
            (Some(Path::new("/run/redis.sock")), 2)
        );
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for url in ["", "http://localhost", "redis://h/x"] {
            assert!(matches!(ConnectOptions::try_from(url), Err(Error::Invalid(_))), "{url}");
        }
    }
}
