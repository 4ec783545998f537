//! The bytes to and from the server: TCP, TLS over TCP, a Unix socket.

use std::{io, sync::Arc};

use rustls::{
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        ClientConfig,
    },
    crypto::{ring, verify_tls12_signature, verify_tls13_signature, CryptoProvider},
    pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer, ServerName, UnixTime},
    DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::conn::{ConnectOptions, TlsOptions};

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
    let socket = TcpStream::connect((options.host.as_str(), options.port)).await?;
    socket.set_nodelay(true)?;
    let Some(tls) = &options.tls else {
        return Ok(Box::new(socket));
    };
    let name = tls.server_name.as_ref().unwrap_or(&options.host).clone();
    let name = ServerName::try_from(name).map_err(io::Error::other)?;
    let config = Arc::new(client_config(tls)?);
    Ok(Box::new(TlsConnector::from(config).connect(name, socket).await?))
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

fn client_config(tls: &TlsOptions) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    match &tls.ca {
        // as with Node, these stand instead of the world's
        Some(ca) => {
            for certificate in certificates(ca)? {
                roots.add(certificate).map_err(io::Error::other)?;
            }
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let builder = ClientConfig::builder().with_root_certificates(roots);
    let mut config = match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => {
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(io::Error::other)?;
            let chain = certificates(cert)?;
            builder.with_client_auth_cert(chain, key).map_err(io::Error::other)?
        }
        _ => builder.with_no_client_auth(),
    };
    if tls.insecure {
        let anyone = Anyone(Arc::new(ring::default_provider()));
        config.dangerous().set_certificate_verifier(Arc::new(anyone));
    }
    Ok(config)
}

fn certificates(pem: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(io::Error::other)
}

/// Takes any certificate, as Node does with `rejectUnauthorized: false`; the key it shows must still be the server's.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
