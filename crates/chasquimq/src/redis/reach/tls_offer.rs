//! What a TLS handshake offers the server: of what the library can do, as much as is wanted.

use rustls::{
    crypto::{ring, CryptoProvider},
    SignatureScheme, SupportedProtocolVersion, ALL_VERSIONS,
};

/// What to offer, in this order, by IANA's numbers. Of what stays empty, all that the engine has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOffer {
    /// Versions of the protocol: 0x0303 is TLS 1.2, 0x0304 is TLS 1.3.
    pub versions: Vec<u16>,
    /// Cipher suites.
    pub cipher_suites: Vec<u16>,
    /// Groups of the key exchange.
    pub groups: Vec<u16>,
    /// Schemes by which the server may sign.
    pub signatures: Vec<u16>,
    /// Names of protocols (ALPN). They have no numbers, and without any none is offered.
    pub protocols: Vec<Vec<u8>>,
}

impl TlsOffer {
    /// The versions that are offered.
    pub(crate) fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        only(ALL_VERSIONS, &self.versions, |version| version.version.into())
    }

    /// The library, with the suites and groups that are offered.
    pub(crate) fn provider(&self) -> CryptoProvider {
        let all = ring::default_provider();
        CryptoProvider {
            cipher_suites: only(&all.cipher_suites, &self.cipher_suites, |suite| suite.suite().into()),
            kx_groups: only(&all.kx_groups, &self.groups, |group| group.name().into()),
            ..all
        }
    }

    /// The schemes that are offered, of those that `provider` can verify.
    pub(crate) fn schemes(&self, provider: &CryptoProvider) -> Vec<SignatureScheme> {
        let all = provider.signature_verification_algorithms.supported_schemes();
        only(&all, &self.signatures, |scheme| scheme.into())
    }
}

/// Those of `all` that are wanted, in the order in which they are.
fn only<T: Copy>(all: &[T], wanted: &[u16], number: impl Fn(T) -> u16) -> Vec<T> {
    if wanted.is_empty() {
        return all.to_vec();
    }
    let find = |wanted: &u16| all.iter().copied().find(|some| number(*some) == *wanted);
    wanted.iter().filter_map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_not_said_all_is_offered() {
        let (offer, all) = (TlsOffer::default(), ring::default_provider());
        let provider = offer.provider();
        assert_eq!(provider.cipher_suites.len(), all.cipher_suites.len());
        assert_eq!(provider.kx_groups.len(), all.kx_groups.len());
        assert_eq!(offer.versions(), ALL_VERSIONS);
        assert_eq!(offer.schemes(&provider).len(), 9);
    }

    /// The numbers that the facade may send (`src/connection/tls-names.ts`).
    #[test]
    fn all_that_has_a_name_is_there_in_the_order_in_which_it_is_wanted() {
        let suites = [0xcca8, 0xc02f, 0xc030, 0xcca9, 0xc02b, 0xc02c, 0x1303, 0x1301, 0x1302];
        let offer = TlsOffer {
            versions: vec![0x0303, 0x0304],
            cipher_suites: suites.to_vec(),
            groups: vec![0x0018, 0x0017, 0x001d],
            signatures: vec![0x0401, 0x0501, 0x0601, 0x0403, 0x0503, 0x0804, 0x0805, 0x0806, 0x0807],
            protocols: Vec::new(),
        };
        let provider = offer.provider();
        let offered: Vec<u16> = provider
            .cipher_suites
            .iter()
            .map(|suite| suite.suite().into())
            .collect();
        assert_eq!(offered, suites);
        let groups: Vec<u16> = provider.kx_groups.iter().map(|group| group.name().into()).collect();
        assert_eq!(groups, offer.groups);
        let versions: Vec<u16> = offer.versions().iter().map(|version| version.version.into()).collect();
        assert_eq!(versions, offer.versions);
        let schemes: Vec<u16> = offer.schemes(&provider).iter().map(|scheme| (*scheme).into()).collect();
        assert_eq!(schemes, offer.signatures);
    }
}
