//! API keys by digest.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// What digests begin with.
const PREFIX: &str = "sha256:";
/// Hexadecimal digits of a digest.
const DIGITS: usize = 64;

/// `sha256:` and 64 lower-case hexadecimal digits.
pub(super) type Digest = Box<[u8]>;

/// The digest a text spells, if it spells one.
pub(super) fn parse(text: &[u8]) -> Option<Digest> {
    let digits = text.strip_prefix(PREFIX.as_bytes())?;
    (digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
        .then(|| text.to_ascii_lowercase().into())
}

/// The digest of an API key. One that looks like a digest is digested like any other: digests are
/// written in policy files, and who has read one must not pass for who has the key.
pub(super) fn of_key(key: &[u8]) -> Digest {
    (PREFIX.to_owned() + &hex(key)).into_bytes().into()
}

/// The first digits of a text's digest.
pub(super) fn short(text: &str) -> Box<str> {
    hex(text.as_bytes()).chars().take(12).collect()
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(DIGITS);
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
