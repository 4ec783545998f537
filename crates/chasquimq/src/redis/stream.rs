//! The bytes to and from the server: TCP, TLS over TCP, a Unix socket.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use rustls::{
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name, ClientConfig, WebPkiServerVerifier,
    },
    crypto::{ring, verify_tls12_signature, verify_tls13_signature, CryptoProvider},
    pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer, ServerName, UnixTime},
    server::ParsedCertificate,
    DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::{
    certificate::{code_for, is_authority, Refused},
    options::{ConnectOptions, TlsOptions},
};

/// How long a peer may take nothing in, and how far probes are apart.
const SILENT: Duration = Duration::from_secs(30);
const PROBE: Duration = Duration::from_secs(10);

/// What a connection reads and writes.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects, without logging in.
/// # Errors
/// The cause, when there is no way to the server or its certificate is refused.
pub(super) async fn open(options: &ConnectOptions) -> io::Result<Box<dyn Stream>> {
    if let Some(path) = &options.path {
        return open_unix(path).await;
    }
    let socket = open_tcp(options).await?;
    let Some(tls) = &options.tls else {
        return Ok(Box::new(socket));
    };
    let name = tls.server_name.as_ref().unwrap_or(&options.host).clone();
    let name = ServerName::try_from(name).map_err(io::Error::other)?;
    let refused = Arc::default();
    let config = Arc::new(client_config(tls, &refused)?);
    let connected = TlsConnector::from(config).connect(name, socket).await;
    let connected = connected.map_err(|cause| match refused.get() {
        Some(code) => io::Error::new(cause.kind(), Refused { code, cause }),
        None => cause,
    });
    Ok(Box::new(connected?))
}

/// Node's code for the refusal of a certificate, once it was refused.
type RefusedFor = Arc<OnceLock<&'static str>>;

async fn open_tcp(options: &ConnectOptions) -> io::Result<TcpStream> {
    let found = tokio::net::lookup_host((options.host.as_str(), options.port)).await?;
    let socket = connect_to_any(&options.wanted(found)?, options.connect_timeout).await?;
    socket.set_nodelay(true)?;
    keep_alive(&socket)?;
    Ok(socket)
}

/// Tries each address that a host's name has, in turn. One that swallows what is sent to it must not use up the time of the others.
async fn connect_to_any(addresses: &[SocketAddr], within: Duration) -> io::Result<TcpStream> {
    let share = within / (2 * addresses.len().max(1) as u32);
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for (at, address) in addresses.iter().enumerate() {
        let connecting = TcpStream::connect(address);
        // the last one has what is left
        let connected = match at + 1 == addresses.len() {
            true => connecting.await,
            false => tokio::time::timeout(share, connecting)
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
        };
        match connected {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Has the system find out that a peer is gone without a word: what is sent to it, or a probe, is not even taken in.
pub(super) fn keep_alive<'a, S>(socket: &'a S) -> io::Result<()>
where
    SockRef<'a>: From<&'a S>,
{
    let socket = SockRef::from(socket);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(SILENT).with_interval(PROBE))?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(SILENT))?;
    Ok(())
}

#[cfg(unix)]
async fn open_unix(path: &std::path::Path) -> io::Result<Box<dyn Stream>> {
    Ok(Box::new(tokio::net::UnixStream::connect(path).await?))
}

#[cfg(not(unix))]
async fn open_unix(_: &std::path::Path) -> io::Result<Box<dyn Stream>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this system has no Unix sockets",
    ))
}

fn client_config(tls: &TlsOptions, refused: &RefusedFor) -> io::Result<ClientConfig> {
    let builder = ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(verifier(tls, refused)?);
    let Some((cert, key)) = tls.cert.as_ref().zip(tls.key.as_ref()) else {
        return Ok(builder.with_no_client_auth());
    };
    let key = PrivateKeyDer::from_pem_slice(key.reveal().as_bytes()).map_err(io::Error::other)?;
    builder
        .with_client_auth_cert(certificates(cert)?, key)
        .map_err(io::Error::other)
}

fn verifier(tls: &TlsOptions, refused: &RefusedFor) -> io::Result<Arc<dyn ServerCertVerifier>> {
    let mut verifier = Verifier {
        provider: Arc::new(ring::default_provider()),
        usual: None,
        given: Vec::new(),
        refused: refused.clone(),
    };
    if tls.insecure {
        return Ok(Arc::new(verifier));
    }
    let mut roots = RootCertStore::empty();
    match &tls.ca {
        // as with Node, these stand instead of the world's
        Some(ca) => {
            verifier.given = certificates(ca)?;
            for certificate in &verifier.given {
                roots.add(certificate.clone()).map_err(io::Error::other)?;
            }
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), verifier.provider.clone()).build();
    verifier.usual = Some(usual.map_err(io::Error::other)?);
    Ok(Arc::new(verifier))
}

fn certificates(pem: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(io::Error::other)
}

/// Takes what the library takes, and as Node does, a certificate that was given: it may be an authority's own, with which the library
/// wants no server to show up. Without the library's, it takes any, as Node does with `rejectUnauthorized: false`; the key that it shows
/// must still be the server's.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    usual: Option<Arc<WebPkiServerVerifier>>,
    given: Vec<CertificateDer<'static>>,
    refused: RefusedFor,
}

impl Verifier {
    /// Notes why a certificate is refused: who connects is told of the library's error alone.
    fn note(&self, error: &rustls::Error, shown: &CertificateDer<'_>, others: &[CertificateDer<'_>]) {
        if let Some(code) = code_for(error, shown, others) {
            // there is one certificate a connection
            let _ = self.refused.set(code);
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(usual) = &self.usual else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified = match usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // said of one that is valid now; whose it is, is not looked at yet
            Err(error) if is_authority(&error) && self.given.contains(end_entity) => {
                ParsedCertificate::try_from(end_entity)
                    .and_then(|shown| verify_server_name(&shown, server_name))
                    .map(|()| ServerCertVerified::assertion())
            }
            verified => verified,
        };
        verified.inspect_err(|error| self.note(error, end_entity, intermediates))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by `openssl req -x509` for `localhost`, good for a hundred years from 2026 on.
    const OWN_AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBlDCCATugAwIBAgIUBX/KA9BrP+1TwgE8VLmzIE7cFJQwCgYIKoZIzj0EAwIw\n\
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMDIxMDcwM1oYDzIxMjYxMDI3\n\
MjEwNzAzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO\n\
PQMBBwNCAATL7WuWzsE9BTh5kqtYDoEJxP1b1iHVAa5u2e1ZS7t1m7GeGylgShvk\n\
CSGeBXqLbnGRQrqbD4T/lQbdRCdZVtslo2kwZzAdBgNVHQ4EFgQUSa0v2Dvt3BUv\n\
3FYLSyzWQc6UOwAwHwYDVR0jBBgwFoAUSa0v2Dvt3BUv3FYLSyzWQc6UOwAwDwYD\n\
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID\n\
RwAwRAIgZav1zj73VJTwCyGupSBTstbmtU1phYi6LIcr5GfhPhUCIExLAmg4oKmp\n\
PNnoaX0FZXyse5mgrfMDft3l2BgJg6WZ\n\
-----END CERTIFICATE-----";

    fn verified(ca: &str, name: &'static str, years_since_1970: u64) -> Result<(), String> {
        let tls = TlsOptions {
            ca: Some(ca.to_owned()),
            ..TlsOptions::default()
        };
        let shown = certificates(OWN_AUTHORITY).expect("a certificate");
        let name = ServerName::try_from(name).expect("a name");
        let now = UnixTime::since_unix_epoch(Duration::from_secs(years_since_1970 * 365 * 86_400));
        let verified =
            verifier(&tls, &Arc::default())
                .expect("a verifier")
                .verify_server_cert(&shown[0], &[], &name, &[], now);
        verified.map(drop).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_connection_is_kept_alive() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let options = ConnectOptions {
            port: server.local_addr().expect("an address").port(),
            ..ConnectOptions::default()
        };
        let socket = open_tcp(&options).await.expect("a connection");
        assert!(SockRef::from(&socket).keepalive().expect("an option"));
    }

    /// An address that answers nothing: its line of connections that nobody accepts is full. It does as long as they live.
    #[cfg(target_os = "linux")]
    fn swallowing() -> (SocketAddr, Vec<socket2::Socket>) {
        let new = || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        let listener = new();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        listener.bind(&any.into()).expect("a port");
        listener.listen(0).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let mut sockets = vec![listener];
        for _ in 0..4 {
            let waiting = new();
            waiting.set_nonblocking(true).expect("an option");
            // those that fit, and those that do not, are told nothing yet
            let _ = waiting.connect(&address);
            sockets.push(waiting);
        }
        (address.as_socket().expect("an address"), sockets)
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_address_that_refuses_or_answers_nothing_leaves_time_for_those_behind_it() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let reached = server.local_addr().expect("an address");
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let refusing = closed.local_addr().expect("an address");
        drop(closed);
        let (silent, _line) = swallowing();
        let within = Duration::from_millis(600);
        for addresses in [
            vec![refusing, reached],
            vec![silent, reached],
            vec![silent, refusing, silent, reached],
        ] {
            let socket = tokio::time::timeout(within, connect_to_any(&addresses, within)).await;
            let socket = socket.expect("in time").expect("a connection");
            assert_eq!(socket.peer_addr().expect("an address"), reached);
        }
        let refused = connect_to_any(&[silent, refusing], within).await;
        assert_eq!(refused.expect_err("no server").kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_certificate_that_was_given_is_taken_for_its_name_and_time() {
        assert_eq!(verified(OWN_AUTHORITY, "localhost", 60), Ok(()));
        for (name, years, told) in [
            ("other", 60, "not valid for name"),
            ("localhost", 50, "not valid yet"),
            ("localhost", 300, "expired"),
        ] {
            let refused = verified(OWN_AUTHORITY, name, years).expect_err("a refusal");
            assert!(refused.contains(told), "{refused}");
        }
    }
}
