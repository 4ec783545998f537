//! Why a server's certificate was refused, as Node calls it.

use std::{error::Error, fmt, io};

use rustls::{pki_types::CertificateDer, CertificateError};

/// A connection that failed for its certificate. Reads as its cause.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Node's code.
    pub code: &'static str,
    /// What went wrong.
    pub cause: io::Error,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(formatter)
    }
}

impl Error for Refused {}

/// Node's code for a certificate that is for another name.
const OTHER_NAME: &str = "ERR_TLS_CERT_ALTNAME_INVALID";

/// Node's code, if it is for its certificate that a connection failed.
pub(crate) fn code_of(error: &io::Error) -> Option<&'static str> {
    error.get_ref()?.downcast_ref::<Refused>().map(|refused| refused.code)
}

/// Node's code for the refusal of a certificate, which the others were to vouch for.
pub(crate) fn code_for(
    refusal: &rustls::Error,
    shown: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
) -> Option<&'static str> {
    use CertificateError as Why;
    if is_authority(refusal) {
        return Some(untrusted(shown, others));
    }
    let rustls::Error::InvalidCertificate(why) = refusal else {
        return None;
    };
    match why {
        Why::UnknownIssuer => Some(untrusted(shown, others)),
        Why::Expired | Why::ExpiredContext { .. } => Some("CERT_HAS_EXPIRED"),
        Why::NotValidYet | Why::NotValidYetContext { .. } => Some("CERT_NOT_YET_VALID"),
        Why::NotValidForName | Why::NotValidForNameContext { .. } => Some(OTHER_NAME),
        Why::BadSignature => Some("CERT_SIGNATURE_FAILURE"),
        Why::Revoked => Some("CERT_REVOKED"),
        Why::UnknownRevocationStatus => Some("UNABLE_TO_GET_CRL"),
        Why::ExpiredRevocationList | Why::ExpiredRevocationListContext { .. } => Some("CRL_HAS_EXPIRED"),
        _ => None,
    }
}

/// Node's code of this name, for what a caller refuses by itself.
pub(crate) fn code_named(name: &str) -> Option<&'static str> {
    (name == OTHER_NAME).then_some(OTHER_NAME)
}

/// Whether a certificate was refused only because it is for another name.
pub(crate) fn is_for_another_name(error: &rustls::Error) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    matches!(
        error,
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })
    )
}

/// Whether a certificate was refused only because it is an authority's.
pub(crate) fn is_authority(error: &rustls::Error) -> bool {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(cause)) => {
            cause.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
        }
        _ => false,
    }
}

fn untrusted(shown: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> &'static str {
    match others.last() {
        _ if is_self_signed(shown) => "DEPTH_ZERO_SELF_SIGNED_CERT",
        None => "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
        Some(last) if is_self_signed(last) => "SELF_SIGNED_CERT_IN_CHAIN",
        Some(_) => "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate).is_ok_and(|read| read.issuer() == read.subject())
}
