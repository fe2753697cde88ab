//! Whether a certificate is of our time.

use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore};

/// What is wrong with the dates of a certificate now.
///
/// What verifies certificates looks at their dates before it looks for who has issued them. So nobody
/// need be trusted here, and no certificate be taken apart.
pub(super) fn validity_problem(
    certificate: &CertificateDer<'_>,
    now: UnixTime,
) -> Option<&'static str> {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let nobody = RootCertStore::empty();
    let schemes = super::provider().signature_verification_algorithms;
    let verified =
        verify_server_cert_signed_by_trust_anchor(&parsed, &nobody, &[], now, schemes.all);
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

    fn now(identity: &Identity, now: UnixTime) -> Option<&'static str> {
        validity_problem(&CertificateDer::from_pem_file(&identity.certificate).unwrap(), now)
    }

    #[test]
    fn a_certificate_of_another_time_is_told() {
        let all = Certificates::new();
        let the_year_2000 = UnixTime::since_unix_epoch(Duration::from_secs(960_000_000));
        let long_ago = UnixTime::since_unix_epoch(Duration::ZERO);
        assert_eq!(now(&all.server, UnixTime::now()), None);
        assert_eq!(now(&all.expired, UnixTime::now()), Some("has expired"));
        assert_eq!(now(&all.expired, the_year_2000), None);
        assert_eq!(now(&all.expired, long_ago), Some("is not valid yet"));
    }
}
