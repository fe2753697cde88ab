//! Tokens, known by their digests alone.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// 128 bits in base64, which packs them tightest of what people write tokens in.
const SHORTEST: usize = 22;
/// More than one, so that a new one can be given out before the old one is withdrawn.
const MOST: usize = 2;

/// One token, or two while they are changed for one another.
#[derive(Clone)]
pub(crate) struct Tokens(Vec<[u8; 32]>);

/// What a token is called where it must not be told: the beginning of its digest.
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
    /// The tokens of a text, between spaces, commas or lines. The reason why not shows nothing of them.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let all: Vec<&str> = text
            .split(|letter: char| letter.is_whitespace() || letter == ',')
            .filter(|token| !token.is_empty())
            .collect();
        if all.is_empty() || all.len() > MOST {
            return Err(format!("1 or {MOST} tokens are wanted, not {}", all.len()));
        }
        if all.iter().any(|token| token.len() < SHORTEST) {
            return Err(format!(
                "a token has at least {SHORTEST} characters, so that nobody guesses it; for one: \
                 openssl rand -hex 32"
            ));
        }
        if all.iter().any(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err("a token is of printable ASCII characters".to_owned());
        }
        Ok(Self(all.into_iter().map(digest).collect()))
    }

    /// The token that this is, if it is one. It takes as long whichever it is, or if it is none.
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
    /// Whether one of these is among the others.
    pub(crate) fn has_any_of(&self, others: &Self) -> bool {
        self.0.iter().any(|digest| others.0.contains(digest))
    }

    /// The digest of the token that is called so, which nobody is ever told.
    pub(super) fn digest(&self, token: Fingerprint) -> Option<&[u8; 32]> {
        self.0.iter().find(|known| Fingerprint::of(known) == token)
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
    fn two_are_valid_at_once_and_told_apart() {
        let tokens = Tokens::parse(&format!(" {ONE}\n{TWO}\n")).unwrap();
        let [one, two] = [ONE, TWO].map(|token| tokens.find(token.as_bytes()));
        assert!(one.is_some() && two.is_some() && one != two);
        for wrong in ["", "0", &ONE.to_uppercase(), &format!("{ONE}{TWO}")] {
            assert_eq!(tokens.find(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn what_can_be_guessed_is_refused_without_being_shown() {
        let three = [ONE, TWO, ONE].join(",");
        let umlaut = "ä".repeat(22);
        for bad in ["", " ", "short", "123456789012345678901", &three, &umlaut] {
            let reason = Tokens::parse(bad).unwrap_err();
            assert!(bad.trim().is_empty() || !reason.contains(bad), "{reason}");
        }
        assert!(Tokens::parse("1234567890123456789012").is_ok());
    }

    #[test]
    fn nothing_of_them_is_printed() {
        let tokens = Tokens::parse(ONE).unwrap();
        assert_eq!(format!("{tokens:?}"), "Tokens(1)");
        assert_eq!(tokens.find(ONE.as_bytes()).unwrap().to_string().len(), 8);
    }
}
