//! Where the server is, or how to discover it, and how to log in.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use super::{credentials::AskCredentials, identity::IdentityCheck, secret::Secret, tls_offer::TlsOffer};
use crate::keys::slot_of;

/// Where the server is and how to log in.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Host name or address; default `127.0.0.1`.
    pub host: String,
    /// Port; default 6379.
    pub port: u16,
    /// Which addresses of host names to connect to; default all.
    pub family: Option<Family>,
    /// Unix socket, instead of host and port.
    pub path: Option<PathBuf>,
    /// How to discover host and port, instead.
    pub discovery: Option<Discovery>,
    /// ACL user.
    pub username: Option<String>,
    /// Password.
    pub password: Option<Secret>,
    /// Says either anew for each connection.
    pub credentials: Option<AskCredentials>,
    /// Database number.
    pub db: i64,
    /// TLS, if wanted.
    pub tls: Option<TlsOptions>,
    /// Time to wait for a connection, login included.
    pub connect_timeout: Duration,
    /// What `CLIENT LIST` shows.
    pub client_name: Option<String>,
    /// Accept any server version, and any eviction policy without an event.
    pub skip_version_check: bool,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: 6379,
            family: None,
            path: None,
            discovery: None,
            username: None,
            password: None,
            credentials: None,
            db: 0,
            tls: None,
            connect_timeout: Duration::from_secs(10),
            client_name: None,
            skip_version_check: false,
        }
    }
}

/// The kind of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// TLS settings, PEM texts as Node takes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Accept certificates that cannot be verified.
    pub insecure: bool,
    /// Root certificates.
    pub ca: Option<String>,
    /// Client certificate.
    pub cert: Option<String>,
    /// Client key.
    pub key: Option<Secret>,
    /// Server name for SNI and for the certificate; default the host.
    pub server_name: Option<String>,
    /// Lists of certificates that their authorities have revoked. With one, each authority below a root must have a list that is valid.
    pub crl: Option<String>,
    /// What is offered to the server; default all that the engine has.
    pub offer: TlsOffer,
    /// Decides in place of the name in the certificate.
    pub identity: Option<IdentityCheck>,
}

/// Host name or address, and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

/// Which nodes know where the server is.
#[derive(Debug, Clone)]
pub struct Discovery {
    /// Nodes to ask first; they name others.
    pub nodes: Vec<Address>,
    /// Address translation: as nodes announce an address, and as this client reaches it.
    pub nat: Vec<(Address, Address)>,
    /// Sentinels, or nodes of a cluster.
    pub kind: DiscoveryKind,
}

/// The kind of nodes of a [`Discovery`].
#[derive(Debug, Clone)]
pub enum DiscoveryKind {
    /// Sentinels, which know the master.
    Sentinel(SentinelOptions),
    /// Nodes of a cluster, which know the node that serves this slot. A queue's connection sets it.
    Cluster {
        /// 0 to 16383.
        slot: u16,
    },
}

/// How to talk to sentinels.
#[derive(Debug, Clone, Default)]
pub struct SentinelOptions {
    /// Name of the master.
    pub master: String,
    /// ACL user of the sentinels.
    pub username: Option<String>,
    /// Password of the sentinels.
    pub password: Option<Secret>,
    /// TLS of the sentinels, if wanted.
    pub tls: Option<Box<TlsOptions>>,
    /// Do not ask them which other sentinels there are.
    pub only_these: bool,
}

impl ConnectOptions {
    /// The same for a queue whose keys start with `base`: in a cluster, for the node that serves them.
    pub(crate) fn for_keys(mut self, base: &str) -> Self {
        if let Some(DiscoveryKind::Cluster { slot }) = self.discovery.as_mut().map(|discovery| &mut discovery.kind) {
            *slot = slot_of(base);
        }
        self
    }

    /// Whether a connection to a server serves for the other one, too. Of servers that were found; what is checked of them may differ.
    pub(crate) fn reaches_the_same(&self, other: &Self) -> bool {
        let place = |options: &Self| (options.host.clone(), options.port, options.family, options.path.clone());
        let login = |options: &Self| (options.username.clone(), options.password.clone(), options.db);
        place(self) == place(other)
            && login(self) == login(other)
            && self.credentials == other.credentials
            && self.tls == other.tls
            && (self.connect_timeout, &self.client_name) == (other.connect_timeout, &other.client_name)
    }

    /// The slot, in a cluster.
    pub(crate) fn slot(&self) -> Option<u16> {
        match self.discovery.as_ref()?.kind {
            DiscoveryKind::Cluster { slot } => Some(slot),
            DiscoveryKind::Sentinel(_) => None,
        }
    }

    /// Those of the host's addresses to connect to. As with Node, the family is asked of names alone.
    pub(crate) fn wanted(&self, found: impl Iterator<Item = SocketAddr>) -> io::Result<Vec<SocketAddr>> {
        let family = self.family.filter(|_| self.host.parse::<IpAddr>().is_err());
        let is_wanted = |address: &SocketAddr| family.is_none_or(|family| address.is_ipv6() == (family == Family::V6));
        let wanted: Vec<_> = found.filter(is_wanted).collect();
        match wanted.is_empty() {
            // in the words of a name that has no address at all
            true => Err(io::Error::other(
                "failed to lookup address information: none of the family",
            )),
            false => Ok(wanted),
        }
    }

    /// The server's address, as people read it.
    pub(crate) fn place(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.host, self.port),
        }
    }

    pub(crate) fn wants_master(&self) -> bool {
        let kind = self.discovery.as_ref().map(|discovery| &discovery.kind);
        matches!(kind, Some(DiscoveryKind::Sentinel(_)))
    }

    /// The same for the server at this address.
    pub(crate) fn at(&self, Address { host, port }: Address) -> Self {
        Self {
            host,
            port,
            path: None,
            discovery: None,
            ..self.clone()
        }
    }

    /// The same for a discovery node.
    pub(crate) fn of_node(&self, address: Address, kind: &DiscoveryKind) -> Self {
        let node = Self {
            db: 0,
            client_name: None,
            ..self.at(address)
        };
        match kind {
            DiscoveryKind::Cluster { .. } => node,
            DiscoveryKind::Sentinel(sentinel) => Self {
                username: sentinel.username.clone(),
                password: sentinel.password.clone(),
                credentials: None,
                tls: sentinel.tls.as_deref().cloned(),
                ..node
            },
        }
    }
}

impl Discovery {
    /// An address that `teller` announced, translated for this client.
    pub(crate) fn seen(&self, host: &str, port: u16, teller: &str) -> Address {
        // a node that does not know its own address means the one this client used
        let unknown = host.is_empty() || host == "?";
        let told = Address {
            host: if unknown { teller } else { host }.to_owned(),
            port,
        };
        let outside = self.nat.iter().find(|(inside, _)| *inside == told);
        outside.map_or(told, |(_, outside)| outside.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_asked_of_names_alone() {
        let both: [SocketAddr; 2] = ["127.0.0.1:1", "[::1]:1"].map(|text| text.parse().expect("an address"));
        let wanted = |host: &str, family| {
            let options = ConnectOptions {
                host: host.to_owned(),
                family,
                ..ConnectOptions::default()
            };
            options.wanted(both.into_iter()).expect("addresses")
        };
        assert_eq!(wanted("name", None), both);
        assert_eq!(wanted("name", Some(Family::V4)), both[..1]);
        assert_eq!(wanted("name", Some(Family::V6)), both[1..]);
        assert_eq!(wanted("127.0.0.1", Some(Family::V6)), both);
        assert!(ConnectOptions::default().wanted(std::iter::empty()).is_err());
    }
}
