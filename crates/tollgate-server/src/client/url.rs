//! The URL of a service: a scheme, a host, a port, and nothing else.

use hyper::Uri;

/// Where a service is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: Scheme,
    /// A name or an address; of IPv6 in brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

/// What is spoken there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |reason: &str| format!("--server: {text:?} {reason}");
        let uri: Uri = text.parse().map_err(|_| wrong("is not a URL"))?;
        let (scheme, usual_port) = match uri.scheme_str() {
            Some("http") => (Scheme::Http, 80),
            Some("https") => (Scheme::Https, 443),
            _ => return Err(wrong("does not begin with http:// or https://")),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong("has a path; give only http://HOST:PORT"));
        }
        let authority = uri.authority().ok_or_else(|| wrong("has no host"))?;
        if authority.as_str().contains('@') {
            // Without showing it: it may be a password.
            let reason = "names a user, which a service has not; give only http://HOST:PORT";
            return Err(format!("--server: {reason}"));
        }
        let host = authority.host().to_owned();
        match (authority.port_u16(), authority.as_str() == host) {
            (Some(port), _) => Ok(Self { scheme, host, port }),
            (None, true) => Ok(Self { scheme, host, port: usual_port }),
            (None, false) => Err(wrong("is not http://HOST:PORT")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_the_usual_one_unless_it_is_told() {
        for (text, scheme, host, port) in [
            ("http://localhost", Scheme::Http, "localhost", 80),
            ("https://localhost/", Scheme::Https, "localhost", 443),
            ("https://127.0.0.1:8443", Scheme::Https, "127.0.0.1", 8443),
            ("https://[::1]:8443", Scheme::Https, "[::1]", 8443),
        ] {
            assert_eq!(Url::parse(text), Ok(Url { scheme, host: host.to_owned(), port }));
        }
    }
}
