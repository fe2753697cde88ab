//! Text format of permits. Parsing is strict: only text that `Display` can produce is accepted.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{HeldKey, Permit};
use crate::algorithm::PermitId;
use crate::limit::identity::Identity;
use crate::plan::MAX_TAKES;
use crate::subject::Subject;

/// Maximum length of a permit in bytes: fits 16 keys with a tenant and 32 facts each, all of 1024 bytes
/// that need escaping.
const MAX_LENGTH: usize = 1_700_000;

/// Number of hexadecimal digits of an id.
const ID_LENGTH: usize = 32;

/// Reason why a text is not a valid permit.
///
/// ```
/// use tollgate::Permit;
///
/// let error = "not a permit".parse::<Permit>().unwrap_err();
/// assert_eq!(error.to_string(), "a permit must start with 32 lower-case hexadecimal digits, not all zero");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct PermitError {
    reason: &'static str,
}

impl PermitError {
    const LENGTH: Self = Self { reason: "a permit must be at most 1 700 000 bytes long" };
    const ID: Self =
        Self { reason: "a permit must start with 32 lower-case hexadecimal digits, not all zero" };
    const KEYS: Self = Self { reason: "a permit must contain 1 to 16 different keys" };
    const KEY: Self =
        Self { reason: "a key in a permit must be @identity{subject} of a concurrency limit" };

    /// Always false: retrying with the same text fails again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}

impl fmt::Display for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        let mut keys = self.held.iter();
        keys.try_for_each(|key| write!(f, "@{}{{{}}}", key.identity, key.subject))
    }
}

impl FromStr for Permit {
    type Err = PermitError;

    fn from_str(text: &str) -> Result<Self, PermitError> {
        if text.len() > MAX_LENGTH {
            return Err(PermitError::LENGTH);
        }
        let (id, mut rest) = text.split_at_checked(ID_LENGTH).ok_or(PermitError::ID)?;
        let id = parse_id(id).ok_or(PermitError::ID)?;
        let mut held: Vec<HeldKey> = Vec::new();
        while !rest.is_empty() {
            let (key, after) = parse_key(rest).ok_or(PermitError::KEY)?;
            if held.len() == MAX_TAKES || held.contains(&key) {
                return Err(PermitError::KEYS);
            }
            held.push(key);
            rest = after;
        }
        if held.is_empty() { Err(PermitError::KEYS) } else { Ok(Self { id, held }) }
    }
}

fn parse_id(text: &str) -> Option<PermitId> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_hex = text.bytes().all(is_digit);
    PermitId::from_u128(u128::from_str_radix(text, 16).ok().filter(|_| is_hex)?)
}

/// Parses the first key of a text; also returns the rest of the text.
fn parse_key(text: &str) -> Option<(HeldKey, &str)> {
    let (identity, rest) = text.strip_prefix('@')?.split_once('{')?;
    let (subject, after) = rest.split_once('}')?;
    let holds_slots = Identity::parse(identity)?.letter.algorithm().holds_slots();
    let key = HeldKey { identity: identity.to_owned(), subject: subject.to_owned() };
    (holds_slots && Subject::parse(subject).is_some()).then_some((key, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::subject::Subject;

    const ID: &str = "000000000000000000000000000000ff";

    fn key() -> impl Strategy<Value = HeldKey> {
        let facts = prop::collection::vec("\\PC{0,8}", 0..4);
        ("[A-Za-z0-9._-]{1,64}", "[A-Za-z0-9._-]{1,64}(#[1-9][0-9]?)?", facts).prop_map(
            |(rule, name, facts)| HeldKey {
                identity: format!("n{rule}/{name}"),
                subject: Subject::in_tenant("t", facts).to_string(),
            },
        )
    }

    proptest! {
        #[test]
        fn formatted_permit_parses_back(id in 1u128.., held in prop::collection::vec(key(), 1..=16)) {
            let permit = Permit { id: PermitId::from_u128(id).unwrap(), held };
            let distinct = (1..permit.held.len()).all(|n| !permit.held[..n].contains(&permit.held[n]));
            prop_assume!(distinct);
            prop_assert_eq!(permit.to_string().parse(), Ok(permit));
        }

        #[test]
        fn parsed_permit_formats_back(text in "\\PC{0,80}", id in any::<bool>()) {
            let text = if id { format!("{ID}{text}") } else { text };
            if let Ok(permit) = text.parse::<Permit>() {
                prop_assert_eq!(permit.to_string(), text);
            }
        }

        #[test]
        fn changed_text_is_rejected_or_formats_back(at in 0usize..60, to in any::<char>()) {
            let text = format!("{ID}@nr/a{{t:x}}@nr/b{{t:%7B}}");
            let at = at % text.len();
            let changed: String =
                text.chars().enumerate().map(|(n, c)| if n == at { to } else { c }).collect();
            if let Ok(permit) = changed.parse::<Permit>() {
                prop_assert_eq!(permit.to_string(), changed);
            }
        }
    }

    #[test]
    fn rejects_invalid_text() {
        let many: String = (0..17).map(|n| format!("@nr/{n}{{:k}}")).collect();
        let long = format!("@nr/a{{:{}}}", "k".repeat(MAX_LENGTH));
        for (rest, error) in [
            ("", PermitError::KEYS),
            ("@nr/a{:k}@nr/a{:k}", PermitError::KEYS),
            (&many, PermitError::KEYS),
            (&long, PermitError::LENGTH),
            ("nr/a{:k}", PermitError::KEY),
            ("@tr/a{:k}", PermitError::KEY),
            ("@n/a{:k}", PermitError::KEY),
            ("@nr/{:k}", PermitError::KEY),
            ("@nr/a#{:k}", PermitError::KEY),
            ("@nr/a{:k}}", PermitError::KEY),
            ("@nr/a{:k", PermitError::KEY),
            ("@nr/a{:k%}", PermitError::KEY),
            ("@nr/a{:k%7b}", PermitError::KEY),
            ("@nr/a{: }", PermitError::KEY),
        ] {
            assert_eq!(format!("{ID}{rest}").parse::<Permit>(), Err(error), "{rest}");
        }
        for id in
            ["", &"0".repeat(32), &"F".repeat(32), &ID[1..], "+00000000000000000000000000000ff"]
        {
            assert_eq!(format!("{id}@nr/a{{:k}}").parse::<Permit>(), Err(PermitError::ID), "{id}");
        }
        assert!(format!("{ID}@nr/a{{}}").parse::<Permit>().is_ok(), "the empty subject is valid");
    }
}
