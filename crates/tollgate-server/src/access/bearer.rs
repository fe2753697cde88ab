//! The bearer token of a request, over HTTP and gRPC.

use super::credentials::{Credentials, PresentedToken};

/// Returns the bearer token in the values of all `Authorization` headers, without sessions: decision calls have none.
pub(crate) fn token_credentials<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Credentials<'a> {
    Credentials { token: bearer(values), sessions: Vec::new() }
}

/// Returns the token in the only value of an `Authorization` header.
pub(crate) fn bearer<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> PresentedToken<'a> {
    let mut values = values.into_iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return PresentedToken::Absent,
        (Some(value), None) => value,
        (Some(_), Some(_)) => return PresentedToken::Malformed,
    };
    match value.split_at_checked("Bearer ".len()) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"Bearer ") => {
            PresentedToken::Token(token.trim_ascii())
        }
        _ => PresentedToken::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_missing_and_malformed_tokens() {
        assert_eq!(bearer([]), PresentedToken::Absent);
        assert_eq!(bearer([&b"bearer  abc "[..]]), PresentedToken::Token(b"abc"));
        for values in [&[&b"Basic abc"[..]][..], &[b"Bearer"], &[b"Bearer a", b"Bearer a"]] {
            assert_eq!(bearer(values.iter().copied()), PresentedToken::Malformed, "{values:?}");
        }
    }
}
