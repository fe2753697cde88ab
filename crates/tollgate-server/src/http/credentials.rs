//! The token and the sessions in the headers of a request, and the session cookie of a response.

use std::time::Duration;

use hyper::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderValue};

use crate::access::{Credentials, SESSION_LIFETIME, bearer};

const COOKIE_NAME: &str = "tollgate_session";

/// Returns the bearer token and the session cookies of a request.
pub(super) fn credentials(headers: &HeaderMap) -> Credentials<'_> {
    let token = bearer(authorizations(headers));
    Credentials { token, sessions: cookie_values(headers).collect() }
}

/// Returns the values of all `Authorization` headers.
pub(super) fn authorizations(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes)
}

/// Returns the values of our cookie. There may be several, and other cookies of the host may contain any bytes.
fn cookie_values(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes);
    let pairs = all.flat_map(|value| value.split(|byte| *byte == b';'));
    let texts = pairs.filter_map(|pair| std::str::from_utf8(pair.trim_ascii()).ok());
    texts
        .filter_map(|pair| pair.split_once('=').filter(|(name, _)| *name == COOKIE_NAME))
        .map(|pair| pair.1)
}

/// Returns the `Set-Cookie` value of a signed session.
pub(super) fn session_cookie(signed: &str) -> String {
    cookie(signed, SESSION_LIFETIME)
}

/// Returns the `Set-Cookie` value that deletes the session cookie.
pub(super) fn expired_cookie() -> String {
    cookie("", Duration::ZERO)
}

fn cookie(value: &str, max_age: Duration) -> String {
    let seconds = max_age.as_secs();
    format!("{COOKIE_NAME}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict; Secure")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::token_credentials;

    #[test]
    fn finds_sessions_among_other_cookies() {
        let cookies = format!("other=J\u{fc}rg; {COOKIE_NAME}=old; {COOKIE_NAME}=new");
        let mut headers = HeaderMap::new();
        for value in [cookies.as_bytes(), b"a=\xff; b"] {
            headers.append(COOKIE, HeaderValue::from_bytes(value).unwrap());
        }
        assert_eq!(credentials(&headers).sessions, ["old", "new"]);
        assert!(token_credentials(authorizations(&headers)).sessions.is_empty());
    }

    #[test]
    fn cookie_is_hidden_from_scripts_and_other_sites() {
        let cookie = session_cookie("signed");
        assert!(cookie.starts_with("tollgate_session=signed;"), "{cookie}");
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
        assert!(expired_cookie().contains("Max-Age=0"));
    }
}
