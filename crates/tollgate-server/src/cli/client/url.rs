//! Parsing of `--server`: a URL of scheme, host and port only.

use hyper::Uri;

/// URL of a service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: Scheme,
    /// Host name or address; IPv6 addresses are in brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Url {
    /// Parses a URL, or returns why it is invalid. The scheme defaults to `http`, the port to that of the scheme, and the host of `:PORT` to 127.0.0.1.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            text if text.contains("://") => Self::parse_absolute(text),
            port if port.starts_with(':') => {
                Self::parse_absolute(&format!("http://127.0.0.1{port}"))
            }
            host => Self::parse_absolute(&format!("http://{host}")),
        }
    }

    fn parse_absolute(text: &str) -> Result<Self, String> {
        let invalid = |reason: &str| format!("{text:?} {reason}");
        let uri: Uri = text.parse().map_err(|_| invalid("is not a URL"))?;
        let (scheme, default_port) = match uri.scheme_str() {
            Some("http") => (Scheme::Http, 80),
            Some("https") => (Scheme::Https, 443),
            _ => return Err(invalid("does not start with http:// or https://")),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(invalid("has a path; give only http://HOST:PORT"));
        }
        let authority = uri.authority().ok_or_else(|| invalid("has no host"))?;
        if authority.as_str().contains('@') {
            // The URL is not shown, because it may contain a password.
            let reason = "the URL contains a user name; give only http://HOST:PORT";
            return Err(reason.to_owned());
        }
        let host = authority.host().to_owned();
        match (authority.port_u16(), authority.as_str() == host) {
            (Some(port), _) => Ok(Self { scheme, host, port }),
            (None, true) => Ok(Self { scheme, host, port: default_port }),
            (None, false) => Err(invalid("is not http://HOST:PORT")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_to_port_of_scheme() {
        for (text, scheme, host, port) in [
            ("http://localhost", Scheme::Http, "localhost", 80),
            ("https://localhost/", Scheme::Https, "localhost", 443),
            ("https://127.0.0.1:8443", Scheme::Https, "127.0.0.1", 8443),
            ("https://[::1]:8443", Scheme::Https, "[::1]", 8443),
            ("localhost:8080", Scheme::Http, "localhost", 8080),
            ("localhost", Scheme::Http, "localhost", 80),
            ("[::1]:8080", Scheme::Http, "[::1]", 8080),
            (":8080", Scheme::Http, "127.0.0.1", 8080),
        ] {
            assert_eq!(Url::parse(text), Ok(Url { scheme, host: host.to_owned(), port }));
        }
    }
}
