//! Short subjects, composed in registers: a copy of memory that was written in parts waits for the writes.

use crate::request::{FactValue, SHORT};

/// Length of the text, in bytes: a colon and a value.
const LENGTH: usize = SHORT;

/// A byte that no subject escapes, in place of those after the value.
const PADDING: u128 = each(b'0');

/// The subject of one value without a tenant. The value consists of letters, digits and other characters that need no
/// escapes.
#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
pub(super) struct ShortSubject {
    text: [u8; LENGTH],
    length: usize,
}

impl ShortSubject {
    /// Creates the subject of a value. Returns `None` if it does not fit, or contains a byte that may need an escape.
    #[inline(always)]
    pub(super) fn new(value: &FactValue<'_>) -> Option<Self> {
        let (text, length) = value.as_short().filter(|(_, length)| *length > 0)?;
        if may_need_escapes(text | PADDING << (8 * length)) {
            return None;
        }
        let text = (text << 8 | u128::from(b':')).to_le_bytes();
        Some(Self { text, length: length + 1 })
    }

    /// Returns the text. It is ASCII, so there always is one.
    #[inline(always)]
    pub(super) fn as_str(&self) -> Option<&str> {
        // The whole array at once is checked faster than the bytes in use.
        std::str::from_utf8(&self.text).ok()?.get(..self.length)
    }
}

/// Returns a text of this byte.
const fn each(byte: u8) -> u128 {
    u128::from_le_bytes([byte; LENGTH])
}

/// Sets the high bit of the lowest byte below `bound`, which is at most 128, and none if there is no such byte.
const fn below(text: u128, bound: u8) -> u128 {
    text.wrapping_sub(each(bound)) & !text
}

/// Returns whether any byte is below `-`, above `z`, or one of `/:`. All bytes are compared at once.
#[inline]
const fn may_need_escapes(text: u128) -> bool {
    // `{` is the first byte after `z`. Bytes that are not ASCII have the high bit already.
    let above_z = text.wrapping_add(each(0x80 - b'{')) | text;
    let found =
        below(text, b'-') | above_z | below(text ^ each(b'/'), 1) | below(text ^ each(b':'), 1);
    found & each(0x80) != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{FactValue, LENGTH, ShortSubject};
    use crate::subject::{Subject, is_escaped};

    #[test]
    fn each_accepted_byte_needs_no_escape() {
        for byte in 0..=u8::MAX {
            let is_accepted = (b'-'..=b'z').contains(&byte) && !is_escaped(&byte);
            for value in [vec![byte], vec![b'a', byte, b'0'], [&[b'x'; 14][..], &[byte]].concat()] {
                let short = ShortSubject::new(&FactValue::from(&value));
                assert_eq!(short.is_some(), is_accepted, "{byte}");
            }
        }
    }

    proptest! {
        #[test]
        fn short_subjects_equal_others(value in "[a-zA-Z0-9._-]{1,18}") {
            let short = ShortSubject::new(&FactValue::from(&value));
            prop_assert_eq!(short.is_some(), value.len() < LENGTH);
            if let Some(short) = short {
                let expected = Subject::of([&value]);
                prop_assert_eq!(short.as_str(), Some(expected.as_str()));
            }
        }

        #[test]
        fn addresses_have_short_subjects(address: std::net::Ipv4Addr) {
            let short = ShortSubject::new(&FactValue::from(std::net::IpAddr::V4(address)));
            let expected = Subject::of([address.to_string()]);
            prop_assert_eq!(short.as_ref().and_then(ShortSubject::as_str), Some(expected.as_str()));
        }
    }
}
