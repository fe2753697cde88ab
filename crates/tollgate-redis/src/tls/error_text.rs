//! What went wrong with TLS, in words.

use std::io;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

use crate::address::TlsFiles;

/// What the server did that no TLS came to be, beginning with a verb.
pub(super) fn explain(error: &io::Error, files: &TlsFiles, name: &ServerName<'_>) -> String {
    let Some(problem) = cause(error) else {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                "closed the connection instead of answering in TLS: is this its TLS port?"
                    .to_owned()
            }
            _ => format!("broke off the TLS handshake: {error}"),
        };
    };
    match problem {
        Error::InvalidCertificate(problem) => certificate(problem, files, name),
        Error::InvalidMessage(_) => "does not answer in TLS: is this its TLS port?".to_owned(),
        Error::AlertReceived(alert) => refusal(*alert, files.client.is_some()),
        problem => format!("cannot be spoken to in TLS: {}", one_line(&problem.to_string())),
    }
}

/// An error of an agreed connection. With TLS 1.3 a server looks at our certificate only then.
pub(super) fn told(error: io::Error, has_certificate: bool) -> io::Error {
    match cause(&error) {
        Some(Error::AlertReceived(alert)) => {
            io::Error::other(format!("it {}", refusal(*alert, has_certificate)))
        }
        _ => error,
    }
}

fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn certificate(problem: &CertificateError, files: &TlsFiles, name: &ServerName<'_>) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, Revoked, UnknownIssuer,
    };
    let what = match problem {
        Expired | ExpiredContext { .. } => "has expired".to_owned(),
        NotValidYet | NotValidYetContext { .. } => "is not valid yet".to_owned(),
        Revoked => "has been revoked".to_owned(),
        NotValidForName | NotValidForNameContext { .. } => {
            format!("is not for the name {} (server_name can tell another)", name.to_str())
        }
        UnknownIssuer => match &files.ca {
            Some(ca) => format!("was not issued by a CA in {}", ca.display()),
            None => "was not issued by a publicly known CA (ca can tell another)".to_owned(),
        },
        problem => format!("cannot be accepted: {}", one_line(&problem.to_string())),
    };
    format!("has a certificate that {what}")
}

fn refusal(alert: AlertDescription, has_certificate: bool) -> String {
    use AlertDescription as Alert;
    match alert {
        Alert::CertificateRequired if !has_certificate => {
            "asks for a client certificate, and its address names none (cert and key)".to_owned()
        }
        Alert::HandshakeFailure if !has_certificate => {
            "refused the TLS handshake: does it ask for a client certificate?".to_owned()
        }
        Alert::CertificateRequired
        | Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied => format!("refused the client certificate ({alert:?})"),
        alert => format!("refused the TLS handshake ({alert:?})"),
    }
}

/// Some messages tell what a server has sent.
fn one_line(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
