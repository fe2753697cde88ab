//! Explanations of TLS errors.

use std::io;
use std::path::Path;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

use crate::connection::ConnectError;

/// The trusted certificate authorities.
#[derive(Clone, Copy)]
pub(super) enum Trust<'a> {
    Public,
    File(&'a Path),
    /// Those of a configuration that the program supplied.
    Config,
}

/// Explains a failed handshake. The text begins with a verb; the subject is the server.
pub(super) fn explain(
    error: &io::Error,
    trust: Trust<'_>,
    has_certificate: bool,
    name: &ServerName<'_>,
) -> ConnectError {
    let Some(problem) = cause(error) else {
        // Also sent by a proxy whose server is down.
        return ConnectError::Unreachable(match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                "closed the connection during the TLS handshake: is this its TLS port?".to_owned()
            }
            _ => format!("broke the TLS handshake: {error}"),
        });
    };
    ConnectError::Misconfigured(match problem {
        Error::InvalidCertificate(problem) => certificate(problem, trust, name),
        Error::InvalidMessage(_) => "does not use TLS: is this its TLS port?".to_owned(),
        Error::AlertReceived(alert) => refusal(*alert, has_certificate),
        problem => {
            format!("does not support the TLS connection: {}", one_line(&problem.to_string()))
        }
    })
}

/// Explains an error after the handshake. With TLS 1.3 the server checks the client certificate only then.
pub(super) fn explain_io(error: io::Error, has_certificate: bool) -> io::Error {
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

fn certificate(problem: &CertificateError, trust: Trust<'_>, name: &ServerName<'_>) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, Revoked, UnknownIssuer,
    };
    let reason = match problem {
        Expired | ExpiredContext { .. } => "has expired".to_owned(),
        NotValidYet | NotValidYetContext { .. } => "is not valid yet".to_owned(),
        Revoked => "has been revoked".to_owned(),
        NotValidForName | NotValidForNameContext { .. } => {
            format!("is not for the name {} (set server_name for another name)", name.to_str())
        }
        UnknownIssuer => match trust {
            Trust::File(ca) => format!("was not issued by a CA in {}", ca.display()),
            Trust::Public => "was not issued by a public CA (set ca for another)".to_owned(),
            Trust::Config => {
                "was not issued by a CA that the supplied TLS configuration trusts".to_owned()
            }
        },
        problem => format!("cannot be accepted: {}", one_line(&problem.to_string())),
    };
    format!("has a certificate that {reason}")
}

fn refusal(alert: AlertDescription, has_certificate: bool) -> String {
    use AlertDescription as Alert;
    match alert {
        Alert::CertificateRequired if !has_certificate => {
            "requires a client certificate, and the address has none (cert and key)".to_owned()
        }
        Alert::HandshakeFailure if !has_certificate => {
            "refused the TLS handshake: it may require a client certificate".to_owned()
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

/// Limits a text that may contain data of the server to one line of 200 characters.
fn one_line(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
