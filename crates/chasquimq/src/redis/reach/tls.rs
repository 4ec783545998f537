//! TLS: the handshake, and which certificates it takes.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use rustls::{
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name, ClientConfig, WebPkiServerVerifier,
    },
    crypto::{verify_tls12_signature, verify_tls13_signature, CryptoProvider},
    pki_types::{pem::PemObject, CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime},
    server::ParsedCertificate,
    DigitallySignedStruct, PeerMisbehaved, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{client::TlsStream, TlsConnector};

use super::{
    certificate::{code_for, is_authority, is_for_another_name, Refused},
    options::TlsOptions,
};

/// Speaks TLS over `stream` with the server that is reached as `host`.
/// # Errors
/// The cause, when there is no agreement, or its certificate is refused.
pub(crate) async fn secure<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    tls: &TlsOptions,
    host: &str,
) -> io::Result<TlsStream<S>> {
    let host = tls.server_name.as_deref().unwrap_or(host);
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let refused = Arc::default();
    let config = Arc::new(client_config(tls, &refused)?);
    let connected = TlsConnector::from(config).connect(name, stream).await;
    let connected = connected.map_err(|cause| match refused.get() {
        Some(code) => io::Error::new(cause.kind(), Refused { code, cause }),
        None => cause,
    })?;
    // as with Node, what it comes to changes nothing where any certificate is taken
    if let Some(check) = tls.identity.as_ref().filter(|_| !tls.insecure) {
        let (_, session) = connected.get_ref();
        let shown = session.peer_certificates().unwrap_or_default();
        check.ask(host, shown.iter().map(|one| one.to_vec()).collect()).await?;
    }
    Ok(connected)
}

/// Node's code for the refusal of a certificate, once it was refused.
type RefusedFor = Arc<OnceLock<&'static str>>;

fn client_config(tls: &TlsOptions, refused: &RefusedFor) -> io::Result<ClientConfig> {
    let provider = Arc::new(tls.offer.provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&tls.offer.versions())
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier(tls, provider, refused)?);
    let mut config = match tls.cert.as_ref().zip(tls.key.as_ref()) {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key.reveal().as_bytes()).map_err(io::Error::other)?;
            builder
                .with_client_auth_cert(certificates(cert)?, key)
                .map_err(io::Error::other)?
        }
    };
    config.alpn_protocols.clone_from(&tls.offer.protocols);
    Ok(config)
}

fn verifier(
    tls: &TlsOptions,
    provider: Arc<CryptoProvider>,
    refused: &RefusedFor,
) -> io::Result<Arc<dyn ServerCertVerifier>> {
    let mut verifier = Verifier {
        schemes: tls.offer.schemes(&provider),
        provider,
        usual: None,
        given: Vec::new(),
        any_name: tls.identity.is_some(),
        refused: refused.clone(),
    };
    if tls.insecure {
        return Ok(Arc::new(verifier));
    }
    let mut roots = RootCertStore::empty();
    match &tls.ca {
        // as with Node, these stand instead of the world's
        Some(ca) => {
            let given = certificates(ca)?;
            for certificate in &given {
                roots.add(certificate.clone()).map_err(io::Error::other)?;
            }
            // one that vouches for itself cannot be looked up in a list
            if tls.crl.is_none() {
                verifier.given = given;
            }
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let mut usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), verifier.provider.clone());
    if let Some(crl) = &tls.crl {
        let lists = CertificateRevocationListDer::pem_slice_iter(crl.as_bytes());
        let lists = lists.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        usual = usual.with_crls(lists).enforce_revocation_expiration();
    }
    verifier.usual = Some(usual.build().map_err(io::Error::other)?);
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
    // those that were offered
    schemes: Vec<SignatureScheme>,
    // who is behind the certificate is somebody else's question
    any_name: bool,
    refused: RefusedFor,
}

impl Verifier {
    /// A server may not sign by what it was not offered.
    fn must_be_offered(&self, signature: &DigitallySignedStruct) -> Result<(), rustls::Error> {
        match self.schemes.contains(&signature.scheme) {
            true => Ok(()),
            false => Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into()),
        }
    }

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
        // the name is what both look at last
        let verified = match verified {
            Err(error) if self.any_name && is_for_another_name(&error) => Ok(ServerCertVerified::assertion()),
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
        self.must_be_offered(signature)?;
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
        self.must_be_offered(signature)?;
        verify_tls13_signature(
            message,
            cert,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        let verified = verifier(&tls, Arc::new(tls.offer.provider()), &Arc::default())
            .expect("a verifier")
            .verify_server_cert(&shown[0], &[], &name, &[], now);
        verified.map(drop).map_err(|error| error.to_string())
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
