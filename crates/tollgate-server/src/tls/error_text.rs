//! What went wrong with TLS to a service, in words.

use std::error::Error as AnyError;
use std::io;

use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

/// What one must know of a command to say what it did wrong.
#[derive(Debug)]
pub(super) struct Trouble {
    /// The host that was to be asked.
    pub(super) name: String,
    /// The file of authorities, if not the public ones are trusted.
    pub(super) ca: Option<String>,
    pub(super) has_certificate: bool,
}

/// What TLS says of an error, if it is one of TLS.
pub(super) fn find<'a>(error: &'a (dyn AnyError + Send + Sync + 'static)) -> Option<&'a Error> {
    let mut next: Option<&(dyn AnyError + 'static)> = Some(error);
    while let Some(error) = next {
        // What an I/O error wraps is not among its sources, but the source of what it wraps is.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(found) = inner.and_then(|inner| inner.downcast_ref()) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

impl Trouble {
    /// Why no TLS came to be.
    pub(super) fn in_handshake(&self, error: &io::Error) -> String {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(cause) => self.told(cause),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                "it closed the connection instead of answering in TLS: is it http://?".to_owned()
            }
            None => format!("it broke off the TLS handshake: {error}"),
        }
    }

    pub(super) fn told(&self, cause: &Error) -> String {
        match cause {
            Error::InvalidCertificate(problem) => {
                format!("its certificate {}", self.certificate(problem))
            }
            Error::InvalidMessage(_) => "it does not answer in TLS: is it http://?".to_owned(),
            Error::AlertReceived(alert) => self.refusal(*alert),
            other => format!("it cannot be spoken to in TLS: {}", one_line(&other.to_string())),
        }
    }

    fn certificate(&self, problem: &CertificateError) -> String {
        use CertificateError::{
            Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
            NotValidYetContext, UnknownIssuer,
        };
        match problem {
            Expired | ExpiredContext { .. } => "has expired".to_owned(),
            NotValidYet | NotValidYetContext { .. } => "is not valid yet".to_owned(),
            NotValidForName | NotValidForNameContext { .. } => {
                format!("is not for the name {}", self.name)
            }
            UnknownIssuer => match &self.ca {
                Some(ca) => format!("was not issued by a CA in {ca}"),
                None => "was not issued by a publicly known CA; --ca can name another".to_owned(),
            },
            problem => format!("cannot be accepted: {}", one_line(&problem.to_string())),
        }
    }

    fn refusal(&self, alert: AlertDescription) -> String {
        use AlertDescription as Alert;
        match alert {
            Alert::CertificateRequired if !self.has_certificate => {
                "it asks for a client certificate; give --client-cert and --client-key".to_owned()
            }
            Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::DecryptError
            | Alert::UnknownCA
            | Alert::AccessDenied => format!("it refused the client certificate ({alert:?})"),
            alert => format!("it refused the TLS handshake ({alert:?})"),
        }
    }
}

/// Some messages repeat what a service has sent.
fn one_line(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
