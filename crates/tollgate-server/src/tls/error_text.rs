//! Error messages for TLS failures of the client commands.

use std::error::Error as AnyError;
use std::io;

use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

/// Client settings that appear in the messages.
#[derive(Debug)]
pub(super) struct ErrorContext {
    /// The server's host.
    pub(super) name: String,
    /// The `--ca` file; `None` if the public CAs are trusted.
    pub(super) ca: Option<String>,
    pub(super) has_certificate: bool,
}

/// Returns the TLS error in an error's chain of sources.
pub(super) fn find_tls_error<'a>(
    error: &'a (dyn AnyError + Send + Sync + 'static),
) -> Option<&'a Error> {
    let mut next: Option<&(dyn AnyError + 'static)> = Some(error);
    while let Some(error) = next {
        // `source` of an I/O error skips the wrapped error itself.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(found) = inner.and_then(|inner| inner.downcast_ref()) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

impl ErrorContext {
    /// Describes a failed handshake.
    pub(super) fn describe_handshake(&self, error: &io::Error) -> String {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(cause) => self.describe(cause),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                "the server closed the connection during the TLS handshake; try http://".to_owned()
            }
            None => format!("TLS handshake failed: {error}"),
        }
    }

    /// Describes a TLS error in one line.
    pub(super) fn describe(&self, cause: &Error) -> String {
        match cause {
            Error::InvalidCertificate(problem) => {
                format!("the server's certificate {}", self.certificate_problem(problem))
            }
            Error::InvalidMessage(_) => "the server does not use TLS; try http://".to_owned(),
            Error::AlertReceived(alert) => self.alert_text(*alert),
            error => format!("TLS error: {}", one_line(&error.to_string())),
        }
    }

    fn certificate_problem(&self, problem: &CertificateError) -> String {
        use CertificateError::{
            Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
            NotValidYetContext, UnknownIssuer,
        };
        match problem {
            Expired | ExpiredContext { .. } => "has expired".to_owned(),
            NotValidYet | NotValidYetContext { .. } => "is not valid yet".to_owned(),
            NotValidForName | NotValidForNameContext { .. } => {
                format!("is not valid for the name {}", self.name)
            }
            UnknownIssuer => match &self.ca {
                Some(ca) => format!("was not issued by a CA in {ca}"),
                None => "was not issued by a public CA; use --ca to trust a private one".to_owned(),
            },
            // The name of the cause in webpki, which rustls does not distinguish.
            problem if problem.to_string().contains("CaUsedAsEndEntity") => {
                "is that of a CA; create one for the server, with openssl: -addext basicConstraints=CA:FALSE".to_owned()
            }
            problem => format!("is not acceptable: {}", one_line(&problem.to_string())),
        }
    }

    fn alert_text(&self, alert: AlertDescription) -> String {
        use AlertDescription as Alert;
        match alert {
            Alert::CertificateRequired if !self.has_certificate => {
                "the server requires a client certificate; use --client-cert and --client-key"
                    .to_owned()
            }
            Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::DecryptError
            | Alert::UnknownCA
            | Alert::AccessDenied => {
                format!("the server rejected the client certificate ({alert:?})")
            }
            alert => format!("the server rejected the TLS handshake ({alert:?})"),
        }
    }
}

/// Removes control characters and truncates: some messages repeat bytes from the server.
fn one_line(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_rustls::rustls::OtherError;

    use super::*;

    /// The error of webpki for a certificate of a CA, as of `openssl req -x509`.
    #[derive(Debug)]
    struct CaUsedAsEndEntity;

    impl std::fmt::Display for CaUsedAsEndEntity {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(formatter, "{self:?}")
        }
    }

    impl AnyError for CaUsedAsEndEntity {}

    #[test]
    fn certificate_of_a_ca_is_explained() {
        let context =
            ErrorContext { name: "localhost".to_owned(), ca: None, has_certificate: false };
        let cause = CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity)));
        let text = context.describe(&Error::InvalidCertificate(cause));
        assert!(text.starts_with("the server's certificate is that of a CA; "), "{text}");
    }
}
