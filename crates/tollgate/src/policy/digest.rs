//! SHA-256 digests of API keys and policy texts.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The prefix of every digest.
const PREFIX: &str = "sha256:";
/// The number of hexadecimal digits in a digest.
const DIGITS: usize = 64;

/// `sha256:` and 64 lower-case hexadecimal digits.
pub(super) type Digest = Box<[u8]>;

/// Parses a digest, in upper or lower case.
pub(super) fn parse(text: &[u8]) -> Option<Digest> {
    let digits = text.strip_prefix(PREFIX.as_bytes())?;
    (digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
        .then(|| text.to_ascii_lowercase().into())
}

/// Returns the digest of an API key. A key that looks like a digest is hashed as well: digests are written in
/// policy files, and knowing a digest must not be as good as knowing the key.
pub(super) fn of_key(key: &[u8]) -> Digest {
    (PREFIX.to_owned() + &hex(key)).into_bytes().into()
}

/// Returns the first 12 hexadecimal digits of the SHA-256 of `text`.
pub(super) fn short_hex(text: &str) -> Box<str> {
    hex(text.as_bytes()).chars().take(12).collect()
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(DIGITS);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
