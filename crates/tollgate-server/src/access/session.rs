//! Sessions: who has logged in with a token, remembered by their browser alone.
//!
//! The cookie says who may do what until when, signed by the digest of the token that was shown. So every node with
//! that token knows it, none keeps it, and it ends with the token.

use std::time::Duration;

use hyper::header::{COOKIE, HeaderMap, HeaderValue};
use ring::hmac;
use tollgate::{Clock, SystemClock, Timestamp};

use super::guard::Role;
use super::tokens::{Fingerprint, Tokens};

const NAME: &str = "tollgate_session";
/// How long a login lasts.
const LIFETIME: Duration = Duration::from_secs(8 * 3600);
/// What is signed begins so, and is nothing else that may be signed one day.
const PURPOSE: &str = "tollgate session 1";

/// What a login is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) role: Role,
    /// Which token was shown.
    pub(crate) token: Fingerprint,
    pub(crate) until: Timestamp,
}

/// What the cookies of a request come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Nothing,
    /// One that has ended, or is not ours.
    Invalid,
    Valid(Session),
}

impl Session {
    /// One that begins now.
    pub(super) fn begin(role: Role, token: Fingerprint) -> Self {
        Self { role, token, until: whole_seconds(SystemClock::new().now() + LIFETIME) }
    }

    /// The header that makes a browser remember it, if the token is one of these.
    pub(super) fn cookie(&self, tokens: &Tokens) -> Option<String> {
        let said = self.said();
        let tag = hmac::sign(&key(tokens, self.token)?, signed(&said).as_bytes());
        let value = format!("{said}.{}", hex(tag.as_ref()));
        Some(cookie(&value, LIFETIME))
    }

    /// Whether it is enough for this. Who may change things may look at them.
    pub(crate) const fn may(&self, role: Role) -> bool {
        matches!(
            (self.role, role),
            (Role::Admin, Role::Admin | Role::Read) | (Role::Read, Role::Read)
        )
    }

    fn said(&self) -> String {
        format!("{}.{}.{}", self.role.as_str(), self.until.as_micros() / 1_000_000, self.token)
    }

    /// The session that a cookie's value is, whether it has ended or not, if it was signed by one of the tokens.
    fn verified<'t>(value: &str, tokens: impl Fn(Role) -> Option<&'t Tokens>) -> Option<Self> {
        let (said, tag) = value.rsplit_once('.')?;
        let mut parts = said.split('.');
        let role = match parts.next()? {
            "admin" => Role::Admin,
            "read" => Role::Read,
            _ => return None,
        };
        let seconds: u64 = parts.next()?.parse().ok()?;
        let until = Timestamp::EPOCH + Duration::from_secs(seconds);
        let session = Self { role, token: parts.next()?.parse().ok()?, until };
        let key = key(tokens(role)?, session.token)?;
        // What is signed is what was read, so nothing has two spellings.
        let is_signed = said == session.said()
            && hmac::verify(&key, signed(said).as_bytes(), &unhex(tag)?).is_ok();
        is_signed.then_some(session)
    }
}

/// The session of a request.
pub(super) fn shown<'t>(headers: &HeaderMap, tokens: impl Fn(Role) -> Option<&'t Tokens>) -> Shown {
    let mut shown = Shown::Nothing;
    for value in named(headers) {
        match Session::verified(value, &tokens) {
            Some(session) if session.until > SystemClock::new().now() => {
                return Shown::Valid(session);
            }
            _ => shown = Shown::Invalid,
        }
    }
    shown
}

/// The header that makes a browser forget it.
pub(crate) fn forgotten() -> String {
    cookie("", Duration::ZERO)
}

fn cookie(value: &str, lasts: Duration) -> String {
    let seconds = lasts.as_secs();
    format!("{NAME}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict; Secure")
}

/// The values of our cookie. Others on the same host may hold anything, and there may be several of ours.
fn named(headers: &HeaderMap) -> impl Iterator<Item = &str> {
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

fn signed(said: &str) -> String {
    format!("{PURPOSE} {said}")
}

fn whole_seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_micros(moment.as_micros() / 1_000_000 * 1_000_000)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|it| u8::try_from(it).ok());
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

    fn read(value: &str, valid: &Tokens) -> Shown {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, format!("a=b; {NAME}={value}").parse().unwrap());
        shown(&headers, |_| Some(valid))
    }

    #[test]
    fn a_session_is_known_wherever_the_token_is() {
        let (session, value) = session(Role::Admin);
        assert_eq!(read(&value, &tokens(TOKEN)), Shown::Valid(session));
        let rotated = tokens(&format!("{OTHER} {TOKEN}"));
        assert_eq!(read(&value, &rotated), Shown::Valid(session));
        assert_eq!(read(&value, &tokens(OTHER)), Shown::Invalid, "it ends with its token");
        assert_eq!(shown(&HeaderMap::new(), |_| None), Shown::Nothing);
        assert_eq!(read("", &tokens(TOKEN)), Shown::Invalid);
    }

    #[test]
    fn other_cookies_do_not_hide_it() {
        let (session, value) = session(Role::Admin);
        let cookies = format!("other=J\u{fc}rg; {NAME}=old; {NAME}={value}");
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::from_bytes(cookies.as_bytes()).unwrap());
        let valid = tokens(TOKEN);
        assert_eq!(shown(&headers, |_| Some(&valid)), Shown::Valid(session));
    }

    #[test]
    fn nobody_changes_what_it_says() {
        let (_, value) = session(Role::Read);
        let valid = tokens(TOKEN);
        assert!(matches!(read(&value, &valid), Shown::Valid(_)));
        let digits = value.split('.').nth(1).unwrap();
        let longer = value.replace(digits, &format!("{digits}0"));
        let spelled = value.replace(digits, &format!("0{digits}"));
        let shorter = &value[..value.len() - 1];
        for forged in [&value.replacen("read", "admin", 1), &longer, &spelled, shorter] {
            assert_eq!(read(forged, &valid), Shown::Invalid, "{forged}");
        }
        for at in 0..value.len() {
            let mut bytes = value.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            assert_eq!(read(&String::from_utf8(bytes).unwrap(), &valid), Shown::Invalid, "{at}");
        }
    }

    #[test]
    fn a_session_ends() {
        let valid = tokens(TOKEN);
        let token = valid.find(TOKEN.as_bytes()).unwrap();
        let ended = Session { role: Role::Admin, token, until: Timestamp::from_micros(1_000_000) };
        let cookie = ended.cookie(&valid).unwrap();
        assert_eq!(read(cookie.split(['=', ';']).nth(1).unwrap(), &valid), Shown::Invalid);
    }

    #[test]
    fn scripts_and_other_sites_never_get_it() {
        let (session, _) = session(Role::Admin);
        let cookie = session.cookie(&tokens(TOKEN)).unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
        assert!(!cookie.contains(TOKEN));
        assert!(forgotten().contains("Max-Age=0"));
    }
}
