//! Stateless login sessions as signed text.
//!
//! The text contains role, expiry and token fingerprint, signed with the digest of the token. Every node with that
//! token accepts it, no node stores it, and it becomes invalid when the token is removed.

use std::time::Duration;

use ring::hmac;
use tollgate::{Clock, SystemClock, Timestamp};

use super::guard::Role;
use super::tokens::{Fingerprint, Tokens};

/// Lifetime of a session.
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(8 * 3600);
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
    /// No session.
    Absent,
    /// The session is expired, forged or of a removed token.
    Invalid,
    Valid(Session),
}

impl Session {
    /// Starts a session now.
    pub(super) fn begin(role: Role, token: Fingerprint) -> Self {
        Self { role, token, until: whole_seconds(SystemClock::new().now() + SESSION_LIFETIME) }
    }

    /// Returns the signed text of the session, if its token is one of these.
    pub(super) fn signed(&self, tokens: &Tokens) -> Option<String> {
        let payload = self.payload();
        let tag = hmac::sign(&key(tokens, self.token)?, signed_text(&payload).as_bytes());
        Some(format!("{payload}.{}", hex(tag.as_ref())))
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

    /// Parses a signed text, if it is signed with one of the tokens. Does not check the expiry.
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

/// Returns the session state of a request that presents these texts.
pub(super) fn session_state<'t>(
    texts: &[&str],
    tokens: impl Fn(Role) -> Option<&'t Tokens>,
) -> SessionState {
    let mut state = SessionState::Absent;
    for value in texts {
        match Session::verified(value, &tokens) {
            Some(session) if session.until > SystemClock::new().now() => {
                return SessionState::Valid(session);
            }
            _ => state = SessionState::Invalid,
        }
    }
    state
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
        (session, session.signed(&tokens).unwrap())
    }

    fn read(value: &str, valid: &Tokens) -> SessionState {
        session_state(&[value], |_| Some(valid))
    }

    #[test]
    fn accepts_session_wherever_the_token_is_configured() {
        let (session, value) = session(Role::Admin);
        assert_eq!(read(&value, &tokens(TOKEN)), SessionState::Valid(session));
        let rotated = tokens(&format!("{OTHER} {TOKEN}"));
        assert_eq!(read(&value, &rotated), SessionState::Valid(session));
        assert_eq!(read(&value, &tokens(OTHER)), SessionState::Invalid, "the token was removed");
        assert_eq!(session_state(&[], |_| None), SessionState::Absent);
        assert_eq!(read("", &tokens(TOKEN)), SessionState::Invalid);
    }

    #[test]
    fn prefers_a_valid_session_to_an_outdated_one() {
        let (session, value) = session(Role::Admin);
        let valid = tokens(TOKEN);
        let state = session_state(&["old", &value], |_| Some(&valid));
        assert_eq!(state, SessionState::Valid(session));
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
        assert_eq!(read(&expired.signed(&valid).unwrap(), &valid), SessionState::Invalid);
    }
}
