//! Where the server is, as the facade says it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use chasquimq::{
    millis, Access, Address, AskCredentials, ConnectOptions, Credentials, Discovery, DiscoveryKind, Family,
    IdentityCheck, IdentityRefusal, Secret, SentinelOptions, Sharing, TlsOffer, TlsOptions,
};
use napi::{
    bindgen_prelude::{Buffer, FnArgs, Promise},
    threadsafe_function::ThreadsafeFunction,
    Status,
};
use napi_derive::napi;

/// Where the server is.
#[napi(object, object_to_js = false)]
#[derive(Clone)]
pub struct NativeConnection {
    /// Host; default `127.0.0.1`.
    pub host: Option<String>,
    /// Port; default 6379.
    pub port: Option<u16>,
    /// 4 or 6: which addresses of host names to connect to; default all.
    pub family: Option<u8>,
    /// Unix socket.
    pub path: Option<String>,
    /// ACL user.
    pub username: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// Says either anew for each connection.
    #[napi(ts_type = "() => Promise<NativeCredentials>")]
    pub ask_credentials: Option<Arc<AskInJs>>,
    /// Which functions answer.
    pub credentials_key: Option<String>,
    /// Database number.
    pub db: Option<i64>,
    /// TLS.
    pub tls: Option<NativeTls>,
    /// Milliseconds to wait for a connection; default 10000.
    pub connect_timeout: Option<u32>,
    /// Shown by `CLIENT LIST`.
    pub connection_name: Option<String>,
    /// Who knows where the server is, instead of host and port.
    pub discovery: Option<NativeDiscovery>,
}

/// Whom a connection logs in as; what is left out is as the connection says.
#[napi(object, object_to_js = false)]
pub struct NativeCredentials {
    /// ACL user.
    pub username: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// For how long it counts, ms; none: for good.
    pub lasts_ms: Option<f64>,
}

/// Sentinels, or nodes of a cluster.
#[napi(object, object_to_js = false)]
#[derive(Clone)]
pub struct NativeDiscovery {
    /// Whom to ask.
    pub nodes: Vec<NativeAddress>,
    /// Addresses as they are told; each is, from here, the one at the same place in `nat_to`.
    pub nat_from: Vec<NativeAddress>,
    /// Addresses as they are from here.
    pub nat_to: Vec<NativeAddress>,
    /// They are sentinels; without it, nodes of a cluster.
    pub sentinel: Option<NativeSentinel>,
}

/// Host and port.
#[napi(object)]
#[derive(Clone)]
pub struct NativeAddress {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// How to ask sentinels.
#[napi(object, object_to_js = false)]
#[derive(Clone)]
pub struct NativeSentinel {
    /// Name of the master.
    pub name: String,
    /// ACL user of the sentinels.
    pub username: Option<String>,
    /// Password of the sentinels.
    pub password: Option<String>,
    /// TLS of the sentinels.
    pub tls: Option<NativeTls>,
    /// Do not ask them which other sentinels there are.
    pub only_these: bool,
}

/// TLS. Certificates and keys are PEM texts, what is offered are IANA's numbers.
#[napi(object, object_to_js = false)]
#[derive(Clone)]
pub struct NativeTls {
    /// `false` accepts certificates that cannot be verified.
    pub reject_unauthorized: Option<bool>,
    /// Root certificates.
    pub ca: Option<String>,
    /// Client certificate.
    pub cert: Option<String>,
    /// Client key.
    pub key: Option<String>,
    /// Lists of revoked certificates.
    pub crl: Option<String>,
    /// Name to ask for and to find in the certificate; default the host.
    pub servername: Option<String>,
    /// Versions of the protocol; default all.
    pub versions: Option<Vec<u16>>,
    /// Cipher suites; default all.
    pub cipher_suites: Option<Vec<u16>>,
    /// Groups of the key exchange; default all.
    pub groups: Option<Vec<u16>>,
    /// Signature schemes; default all.
    pub signatures: Option<Vec<u16>>,
    /// ALPN, a list of bytes for each name.
    pub protocols: Option<Vec<Vec<u8>>>,
    /// Decides in place of the name in the certificate.
    #[napi(ts_type = "(host: string, shown: Array<Buffer>) => NativeIdentityRefusal | undefined")]
    pub check_identity: Option<Arc<CheckIdentity>>,
    /// Which function that is.
    pub check_number: Option<u32>,
}

/// Why a server is not who it should be.
#[napi(object)]
pub struct NativeIdentityRefusal {
    /// For people.
    pub message: String,
    /// Node's code.
    pub code: Option<String>,
}

type Shown = FnArgs<(String, Vec<Buffer>)>;

type AskInJs = ThreadsafeFunction<(), Promise<NativeCredentials>, (), Status, false, true>;

/// JavaScript's function, which does not keep Node alive: what wants the connection does.
type CheckIdentity = ThreadsafeFunction<Shown, Option<NativeIdentityRefusal>, Shown, Status, false, true>;

thread_local! {
    /// All of a thread share connections.
    static SHARING: Sharing = Sharing::default();
}

impl NativeConnection {
    /// Access to the server, on JavaScript's thread.
    pub fn to_access(&self, skip_version_check: Option<bool>) -> Access {
        Access {
            options: self.to_options(skip_version_check),
            sharing: SHARING.with(Sharing::clone),
        }
    }

    /// Where it leads: two that say the same lead to one server.
    pub fn server(&self) -> String {
        let ConnectOptions {
            host,
            port,
            family,
            path,
            discovery,
            ..
        } = self.to_options(None);
        format!("{host} {port} {family:?} {path:?} {discovery:?}")
    }

    /// The engine's form.
    pub fn to_options(&self, skip_version_check: Option<bool>) -> ConnectOptions {
        let default = ConnectOptions::default();
        ConnectOptions {
            host: self.host.clone().unwrap_or(default.host),
            port: self.port.unwrap_or(default.port),
            family: self.family.map(|family| match family {
                6 => Family::V6,
                _ => Family::V4,
            }),
            path: self.path.as_ref().map(PathBuf::from),
            username: self.username.clone(),
            password: self.password.clone().map(Secret::from),
            credentials: self
                .ask_credentials
                .clone()
                .map(|ask| to_credentials(ask, self.credentials_key.clone())),
            db: self.db.unwrap_or(0),
            discovery: self.discovery.as_ref().map(NativeDiscovery::to_discovery),
            tls: self.tls.as_ref().map(NativeTls::to_options),
            connect_timeout: self
                .connect_timeout
                .map_or(default.connect_timeout, |ms| Duration::from_millis(ms.into())),
            client_name: self.connection_name.clone(),
            skip_version_check: skip_version_check.unwrap_or(false),
        }
    }
}

impl NativeTls {
    fn to_options(&self) -> TlsOptions {
        TlsOptions {
            insecure: self.reject_unauthorized == Some(false),
            ca: self.ca.clone(),
            cert: self.cert.clone(),
            key: self.key.clone().map(Secret::from),
            crl: self.crl.clone(),
            server_name: self.servername.clone(),
            offer: TlsOffer {
                versions: self.versions.clone().unwrap_or_default(),
                cipher_suites: self.cipher_suites.clone().unwrap_or_default(),
                groups: self.groups.clone().unwrap_or_default(),
                signatures: self.signatures.clone().unwrap_or_default(),
                protocols: self.protocols.clone().unwrap_or_default(),
            },
            identity: self
                .check_identity
                .clone()
                .map(|check| to_check(check, self.check_number)),
        }
    }
}

fn to_credentials(function: Arc<AskInJs>, key: Option<String>) -> AskCredentials {
    AskCredentials::new(key, move || {
        let function = function.clone();
        async move {
            let told = match function.call_async_catch(()).await {
                Ok(promise) => promise.await,
                Err(error) => Err(error),
            };
            let told = told.map_err(|error| error.reason.to_string())?;
            Ok(Credentials {
                username: told.username,
                password: told.password.map(Secret::from),
                lasts: told.lasts_ms.map(|ms| Duration::from_millis(millis(ms))),
            })
        }
    })
}

fn to_check(function: Arc<CheckIdentity>, number: Option<u32>) -> IdentityCheck {
    IdentityCheck::new(number, move |host, shown| {
        let function = function.clone();
        async move {
            let shown = shown.into_iter().map(Buffer::from).collect();
            match function.call_async_catch((host, shown).into()).await {
                Ok(None) => Ok(()),
                Ok(Some(NativeIdentityRefusal { message, code })) => Err(IdentityRefusal { message, code }),
                // the thread that it belongs to is about to end
                Err(error) => Err(IdentityRefusal {
                    message: error.to_string(),
                    code: None,
                }),
            }
        }
    })
}

impl NativeDiscovery {
    fn to_discovery(&self) -> Discovery {
        let addresses = |given: &[NativeAddress]| given.iter().map(NativeAddress::to_address).collect::<Vec<_>>();
        let nat = addresses(&self.nat_from).into_iter().zip(addresses(&self.nat_to));
        Discovery {
            nodes: addresses(&self.nodes),
            nat: nat.collect(),
            kind: match &self.sentinel {
                None => DiscoveryKind::Cluster { slot: 0 },
                Some(sentinel) => DiscoveryKind::Sentinel(SentinelOptions {
                    master: sentinel.name.clone(),
                    username: sentinel.username.clone(),
                    password: sentinel.password.clone().map(Secret::from),
                    tls: sentinel.tls.as_ref().map(|tls| Box::new(tls.to_options())),
                    only_these: sentinel.only_these,
                }),
            },
        }
    }
}

impl NativeAddress {
    fn to_address(&self) -> Address {
        Address {
            host: self.host.clone(),
            port: self.port,
        }
    }
}
