//! Checks the validity period of a certificate.

use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore};

/// Returns a description if the certificate has expired or is not valid yet.
///
/// The verifier checks the dates before the issuer, so this needs no trusted CA and no certificate parser.
pub(super) fn validity_problem(
    certificate: &CertificateDer<'_>,
    now: UnixTime,
) -> Option<&'static str> {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let no_roots = RootCertStore::empty();
    let schemes = super::provider().signature_verification_algorithms;
    let verified =
        verify_server_cert_signed_by_trust_anchor(&parsed, &no_roots, &[], now, schemes.all);
    match verified {
        Err(Error::InvalidCertificate(Expired | ExpiredContext { .. })) => Some("has expired"),
        Err(Error::InvalidCertificate(NotValidYet | NotValidYetContext { .. })) => {
            Some("is not valid yet")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tollgate_testkit::server::{Certificates, Identity};

    use super::*;

    fn problem(identity: &Identity, now: UnixTime) -> Option<&'static str> {
        validity_problem(&CertificateDer::from_pem_file(&identity.certificate).unwrap(), now)
    }

    #[test]
    fn detects_expired_and_not_yet_valid_certificates() {
        let certificates = Certificates::new();
        let year_2000 = UnixTime::since_unix_epoch(Duration::from_secs(960_000_000));
        let year_1970 = UnixTime::since_unix_epoch(Duration::ZERO);
        assert_eq!(problem(&certificates.server, UnixTime::now()), None);
        assert_eq!(problem(&certificates.expired, UnixTime::now()), Some("has expired"));
        assert_eq!(problem(&certificates.expired, year_2000), None);
        assert_eq!(problem(&certificates.expired, year_1970), Some("is not valid yet"));
    }
}
