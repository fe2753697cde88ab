//! Stateless login sessions in a signed cookie.
//!
//! The cookie contains role, expiry and token fingerprint, signed with the digest of the token. Every node with that
//! token accepts it, no node stores it, and it becomes invalid when the token is removed.

use std::time::Duration;

use hyper::header::{COOKIE, HeaderMap, HeaderValue};
use ring::hmac;
use tollgate::{Clock, SystemClock, Timestamp};

use super::guard::Role;
use super::tokens::{Fingerprint, Tokens};

const NAME: &str = "tollgate_session";
/// Lifetime of a session.
const LIFETIME: Duration = Duration::from_secs(8 * 3600);
/// Prefix of the signed text, so that the signature is valid for nothing else.
const PURPOSE: &str = "tollgate session 1";

/// A login session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) role: Role,
    /// The token used for the login.
    pub(crate) token: Fingerprint,
    /// The expiry.
    pub(crate) until: Timestamp,
}

/// The session state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionState {
    /// No session cookie.
    Absent,
    /// The cookie is expired, forged or of a removed token.
    Invalid,
    Valid(Session),
}

impl Session {
    /// Starts a session now.
    pub(super) fn begin(role: Role, token: Fingerprint) -> Self {
        Self { role, token, until: whole_seconds(SystemClock::new().now() + LIFETIME) }
    }

    /// Returns the `Set-Cookie` value of the session, if its token is one of these.
    pub(super) fn cookie(&self, tokens: &Tokens) -> Option<String> {
        let payload = self.payload();
        let tag = hmac::sign(&key(tokens, self.token)?, signed_text(&payload).as_bytes());
        let value = format!("{payload}.{}", hex(tag.as_ref()));
        Some(cookie(&value, LIFETIME))
    }

    /// Returns whether the session permits a role. The admin role includes reading.
    pub(crate) const fn permits(&self, role: Role) -> bool {
        matches!(
            (self.role, role),
            (Role::Admin, Role::Admin | Role::Read) | (Role::Read, Role::Read)
        )
    }

    fn payload(&self) -> String {
        format!("{}.{}.{}", self.role.as_str(), self.until.as_micros() / 1_000_000, self.token)
    }

    /// Parses a cookie value, if it is signed with one of the tokens. Does not check the expiry.
    fn verified<'t>(value: &str, tokens: impl Fn(Role) -> Option<&'t Tokens>) -> Option<Self> {
        let (payload, tag) = value.rsplit_once('.')?;
        let mut parts = payload.split('.');
        let role = match parts.next()? {
            "admin" => Role::Admin,
            "read" => Role::Read,
            _ => return None,
        };
        let seconds: u64 = parts.next()?.parse().ok()?;
        let until = Timestamp::EPOCH + Duration::from_secs(seconds);
        let session = Self { role, token: parts.next()?.parse().ok()?, until };
        let key = key(tokens(role)?, session.token)?;
        // Comparing with the canonical payload rejects other spellings of the same values.
        let is_signed = payload == session.payload()
            && hmac::verify(&key, signed_text(payload).as_bytes(), &unhex(tag)?).is_ok();
        is_signed.then_some(session)
    }
}

/// Returns the session state of a request.
pub(super) fn session_state<'t>(
    headers: &HeaderMap,
    tokens: impl Fn(Role) -> Option<&'t Tokens>,
) -> SessionState {
    let mut state = SessionState::Absent;
    for value in cookie_values(headers) {
        match Session::verified(value, &tokens) {
            Some(session) if session.until > SystemClock::new().now() => {
                return SessionState::Valid(session);
            }
            _ => state = SessionState::Invalid,
        }
    }
    state
}

/// Returns the `Set-Cookie` value that deletes the session cookie.
pub(crate) fn expired_cookie() -> String {
    cookie("", Duration::ZERO)
}

fn cookie(value: &str, max_age: Duration) -> String {
    let seconds = max_age.as_secs();
    format!("{NAME}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict; Secure")
}

/// Returns the values of our cookie. There may be several, and other cookies of the host may contain any bytes.
fn cookie_values(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes);
    let pairs = all.flat_map(|value| value.split(|byte| *byte == b';'));
    let texts = pairs.filter_map(|pair| std::str::from_utf8(pair.trim_ascii()).ok());
    texts
        .filter_map(|pair| pair.split_once('=').filter(|(name, _)| *name == NAME))
        .map(|pair| pair.1)
}

fn key(tokens: &Tokens, token: Fingerprint) -> Option<hmac::Key> {
    Some(hmac::Key::new(hmac::HMAC_SHA256, tokens.digest(token)?))
}

fn signed_text(payload: &str) -> String {
    format!("{PURPOSE} {payload}")
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_micros(time.as_micros() / 1_000_000 * 1_000_000)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit =
        |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "fedcba9876543210fedcba9876543210";

    fn tokens(text: &str) -> Tokens {
        Tokens::parse(text).unwrap()
    }

    fn session(role: Role) -> (Session, String) {
        let tokens = tokens(TOKEN);
        let session = Session::begin(role, tokens.find(TOKEN.as_bytes()).unwrap());
        let cookie = session.cookie(&tokens).unwrap();
        let value = cookie.split(['=', ';']).nth(1).unwrap().to_owned();
        (session, value)
    }

    fn read(value: &str, valid: &Tokens) -> SessionState {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, format!("a=b; {NAME}={value}").parse().unwrap());
        session_state(&headers, |_| Some(valid))
    }

    #[test]
    fn accepts_session_wherever_the_token_is_configured() {
        let (session, value) = session(Role::Admin);
        assert_eq!(read(&value, &tokens(TOKEN)), SessionState::Valid(session));
        let rotated = tokens(&format!("{OTHER} {TOKEN}"));
        assert_eq!(read(&value, &rotated), SessionState::Valid(session));
        assert_eq!(read(&value, &tokens(OTHER)), SessionState::Invalid, "the token was removed");
        assert_eq!(session_state(&HeaderMap::new(), |_| None), SessionState::Absent);
        assert_eq!(read("", &tokens(TOKEN)), SessionState::Invalid);
    }

    #[test]
    fn finds_session_among_other_cookies() {
        let (session, value) = session(Role::Admin);
        let cookies = format!("other=J\u{fc}rg; {NAME}=old; {NAME}={value}");
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::from_bytes(cookies.as_bytes()).unwrap());
        let valid = tokens(TOKEN);
        assert_eq!(session_state(&headers, |_| Some(&valid)), SessionState::Valid(session));
    }

    #[test]
    fn rejects_modified_cookies() {
        let (_, value) = session(Role::Read);
        let valid = tokens(TOKEN);
        assert!(matches!(read(&value, &valid), SessionState::Valid(_)));
        let digits = value.split('.').nth(1).unwrap();
        let longer = value.replace(digits, &format!("{digits}0"));
        let spelled = value.replace(digits, &format!("0{digits}"));
        let shorter = &value[..value.len() - 1];
        for forged in [&value.replacen("read", "admin", 1), &longer, &spelled, shorter] {
            assert_eq!(read(forged, &valid), SessionState::Invalid, "{forged}");
        }
        for at in 0..value.len() {
            let mut bytes = value.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            assert_eq!(
                read(&String::from_utf8(bytes).unwrap(), &valid),
                SessionState::Invalid,
                "{at}"
            );
        }
    }

    #[test]
    fn rejects_expired_session() {
        let valid = tokens(TOKEN);
        let token = valid.find(TOKEN.as_bytes()).unwrap();
        let expired =
            Session { role: Role::Admin, token, until: Timestamp::from_micros(1_000_000) };
        let cookie = expired.cookie(&valid).unwrap();
        assert_eq!(read(cookie.split(['=', ';']).nth(1).unwrap(), &valid), SessionState::Invalid);
    }

    #[test]
    fn cookie_is_hidden_from_scripts_and_other_sites() {
        let (session, _) = session(Role::Admin);
        let cookie = session.cookie(&tokens(TOKEN)).unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
        assert!(!cookie.contains(TOKEN));
        assert!(expired_cookie().contains("Max-Age=0"));
    }
}
