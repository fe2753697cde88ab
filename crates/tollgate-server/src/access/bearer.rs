//! The bearer token in the headers of a request, over HTTP and gRPC.

use hyper::header::{AUTHORIZATION, HeaderMap};

use super::credentials::{Credentials, PresentedToken};

/// Returns the bearer token of a request, without sessions: decision calls have none.
pub(crate) fn token_credentials(headers: &HeaderMap) -> Credentials<'_> {
    Credentials { token: bearer(headers), sessions: Vec::new() }
}

/// Returns the token of the only `Authorization` header.
pub(crate) fn bearer(headers: &HeaderMap) -> PresentedToken<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return PresentedToken::Absent,
        (Some(value), None) => value,
        (Some(_), Some(_)) => return PresentedToken::Malformed,
    };
    match value.as_bytes().split_at_checked("Bearer ".len()) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"Bearer ") => {
            PresentedToken::Token(token.trim_ascii())
        }
        _ => PresentedToken::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(values: &[&'static str]) -> HeaderMap {
        let values = values.iter().map(|value| (AUTHORIZATION, HeaderValue::from_static(value)));
        let mut headers = HeaderMap::new();
        for (name, value) in values {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn distinguishes_missing_and_malformed_tokens() {
        assert_eq!(bearer(&HeaderMap::new()), PresentedToken::Absent);
        assert_eq!(bearer(&headers(&["bearer  abc "])), PresentedToken::Token(b"abc"));
        for values in [&["Basic abc"][..], &["Bearer"], &["Bearer a", "Bearer a"]] {
            assert_eq!(bearer(&headers(values)), PresentedToken::Malformed, "{values:?}");
        }
    }
}
