//! Configured tokens, stored as SHA-256 digests.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Minimum length of a token in characters: 128 bits in base64, the densest common encoding.
const MIN_LENGTH: usize = 22;
/// Maximum number of tokens of a role. Two allow a rotation: distribute the new one, then remove the old one.
const MAX_TOKENS: usize = 2;

/// The tokens of a role: one, or two during a rotation.
#[derive(Clone)]
pub(crate) struct Tokens(Vec<[u8; 32]>);

/// The first four bytes of a token's digest, which identify it without revealing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(u32);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u32::from_str_radix(text, 16).map(Self)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

impl Tokens {
    /// Parses tokens separated by white space or commas. Errors contain no part of a token.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let tokens: Vec<&str> = text
            .split(|letter: char| letter.is_whitespace() || letter == ',')
            .filter(|token| !token.is_empty())
            .collect();
        if tokens.is_empty() || tokens.len() > MAX_TOKENS {
            return Err(format!("expected 1 or {MAX_TOKENS} tokens, found {}", tokens.len()));
        }
        if tokens.iter().any(|token| token.len() < MIN_LENGTH) {
            return Err(format!(
                "a token must have at least {MIN_LENGTH} characters; generate one with: openssl rand -hex 32"
            ));
        }
        if tokens.iter().any(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err("a token must contain only printable ASCII characters".to_owned());
        }
        Ok(Self(tokens.into_iter().map(digest).collect()))
    }

    /// Returns the fingerprint of the matching token. Takes the same time whether or not a token matches.
    pub(crate) fn find(&self, presented: &[u8]) -> Option<Fingerprint> {
        let presented = digest(presented);
        let mut found = None;
        for known in &self.0 {
            if bool::from(known.ct_eq(&presented)) {
                found = Some(Fingerprint::of(known));
            }
        }
        found
    }
}

impl Tokens {
    /// Returns whether one of these tokens is also in `others`.
    pub(crate) fn has_any_of(&self, others: &Self) -> bool {
        self.0.iter().any(|digest| others.0.contains(digest))
    }

    /// Returns the digest of the token with this fingerprint. Keep it secret: it signs sessions.
    pub(super) fn digest(&self, token: Fingerprint) -> Option<&[u8; 32]> {
        self.0.iter().find(|known| Fingerprint::of(known) == token)
    }
}

/// The configured tokens of each role. Without a check or read token, those calls are open; without an admin token,
/// admin calls do not exist.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoleTokens {
    pub(crate) check: Option<Tokens>,
    pub(crate) read: Option<Tokens>,
    pub(crate) admin: Option<Tokens>,
}

impl RoleTokens {
    /// Returns whether a check or read token is also an admin token.
    pub(crate) fn is_shared(&self) -> bool {
        let pairs = [(&self.check, &self.admin), (&self.read, &self.admin)];
        let both =
            pairs.iter().filter_map(|(tokens, admin)| Some((tokens.as_ref()?, admin.as_ref()?)));
        both.into_iter().any(|(tokens, admin)| tokens.has_any_of(admin))
    }
}

impl Fingerprint {
    fn of(digest: &[u8; 32]) -> Self {
        let [first, second, third, fourth, ..] = *digest;
        Self(u32::from_be_bytes([first, second, third, fourth]))
    }
}

fn digest(token: impl AsRef<[u8]>) -> [u8; 32] {
    Sha256::digest(token.as_ref()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0123456789abcdef0123456789abcdef";
    const TWO: &str = "fedcba9876543210fedcba9876543210";

    #[test]
    fn accepts_two_tokens_and_distinguishes_them() {
        let tokens = Tokens::parse(&format!(" {ONE}\n{TWO}\n")).unwrap();
        let [one, two] = [ONE, TWO].map(|token| tokens.find(token.as_bytes()));
        assert!(one.is_some() && two.is_some() && one != two);
        for wrong in ["", "0", &ONE.to_uppercase(), &format!("{ONE}{TWO}")] {
            assert_eq!(tokens.find(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn rejects_weak_tokens_without_showing_them() {
        let three = [ONE, TWO, ONE].join(",");
        let umlaut = "ä".repeat(22);
        for bad in ["", " ", "short", "123456789012345678901", &three, &umlaut] {
            let reason = Tokens::parse(bad).unwrap_err();
            assert!(bad.trim().is_empty() || !reason.contains(bad), "{reason}");
        }
        assert!(Tokens::parse("1234567890123456789012").is_ok());
    }

    #[test]
    fn debug_output_contains_no_token() {
        let tokens = Tokens::parse(ONE).unwrap();
        assert_eq!(format!("{tokens:?}"), "Tokens(1)");
        assert_eq!(tokens.find(ONE.as_bytes()).unwrap().to_string().len(), 8);
    }
}
