//! Percent-encoding of URLs.

use std::fmt;

/// Decodes a text. Returns `None` if a `%` is not followed by two hexadecimal digits.
pub(super) fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hexadecimal(bytes.next()?)? * 16 + hexadecimal(bytes.next()?)?,
            _ => byte,
        });
    }
    Some(decoded)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    u8::try_from(char::from(digit).to_digit(16)?).ok()
}

/// Displays a text percent-encoded, as part of a URL.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            if byte.is_ascii_alphanumeric() || b"/._-~:,+".contains(&byte) {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}
