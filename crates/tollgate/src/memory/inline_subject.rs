//! Subjects that are stored in their table slots: up to 16 bytes in a slot of 32 bytes, up to 48 bytes in a slot of 64.

use std::fmt;

/// Maximum length in bytes of a subject in a short slot.
pub(super) const SHORT: usize = 16;

/// Maximum length in bytes of a subject in a long slot. Longer subjects are boxed.
const LONG: usize = 48;

/// Padding byte, which never occurs in UTF-8.
const PADDING: u8 = 0xFF;

/// Number of bytes that are compared at a time.
const CHUNK: usize = 16;

/// A subject in a slot.
pub(super) trait InlineSubject: Copy + fmt::Debug {
    /// A type with the alignment of the slot, so that a slot does not cross a cache line.
    type Alignment: fmt::Debug;

    /// Returns `None` if the subject is too long for the slot.
    fn new(subject: &[u8]) -> Option<Self>;

    fn text(&self) -> &[u8];

    /// Returns true if the text equals `subject`.
    fn equals(&self, subject: &[u8]) -> bool;
}

/// A subject followed by padding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Padded<const LENGTH: usize>([u8; LENGTH]);

/// A subject of a short slot.
pub(super) type ShortText = Padded<SHORT>;

/// A subject of a long slot.
pub(super) type LongText = Padded<LONG>;

/// Alignment of a slot of 32 bytes.
#[derive(Debug)]
#[repr(align(32))]
pub(super) struct Align32;

/// Alignment of a slot of 64 bytes.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Align64;

impl<const LENGTH: usize> Padded<LENGTH> {
    fn with_padding(subject: &[u8]) -> Option<Self> {
        let mut bytes = [PADDING; LENGTH];
        bytes.get_mut(..subject.len())?.copy_from_slice(subject);
        Some(Self(bytes))
    }

    fn without_padding(&self) -> &[u8] {
        let length = self.0.iter().position(|byte| *byte == PADDING).unwrap_or(LENGTH);
        self.0.get(..length).unwrap_or_default()
    }
}

impl InlineSubject for ShortText {
    type Alignment = Align32;

    fn new(subject: &[u8]) -> Option<Self> {
        Self::with_padding(subject)
    }

    fn text(&self) -> &[u8] {
        self.without_padding()
    }

    #[inline]
    fn equals(&self, subject: &[u8]) -> bool {
        ShortSubject::new(subject) == Some(self.as_short())
    }
}

impl ShortText {
    #[inline]
    pub(super) fn as_short(&self) -> ShortSubject {
        let [head @ .., _, _, _, _, _, _, _, _] = self.0;
        let [_, _, _, _, _, _, _, _, tail @ ..] = self.0;
        ShortSubject { head: u64::from_le_bytes(head), tail: u64::from_le_bytes(tail) }
    }
}

impl InlineSubject for LongText {
    type Alignment = Align64;

    fn new(subject: &[u8]) -> Option<Self> {
        Self::with_padding(subject)
    }

    fn text(&self) -> &[u8] {
        self.without_padding()
    }

    /// Compares two or three chunks that overlap, which is faster than a comparison of variable length. A long slot
    /// has no subject that is shorter than a chunk.
    #[inline]
    fn equals(&self, subject: &[u8]) -> bool {
        let length = subject.len();
        let ends_at_length = length == LONG || self.0.get(length) == Some(&PADDING);
        let is_middle_equal = length <= 2 * CHUNK || chunk(&self.0, CHUNK) == chunk(subject, CHUNK);
        let last = length.saturating_sub(CHUNK);
        ends_at_length
            && is_middle_equal
            && chunk(&self.0, 0) == chunk(subject, 0)
            && chunk(&self.0, last) == chunk(subject, last)
    }
}

/// Returns the chunk that starts at `start`; `None` if the bytes end before it does.
#[inline]
fn chunk(bytes: &[u8], start: usize) -> Option<u128> {
    let chunk = bytes.get(start..)?.first_chunk()?;
    Some(u128::from_le_bytes(*chunk))
}

/// A padded short subject as two integers, so that a comparison is two integer comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShortSubject {
    head: u64,
    tail: u64,
}

impl ShortSubject {
    /// Packs the subject from overlapping chunks of constant size. Returns `None` if it is too long.
    #[inline]
    pub(super) fn new(subject: &[u8]) -> Option<Self> {
        let length = subject.len();
        // Mask with all bits set from this byte on: the padding after the text.
        let from = |byte: usize| if byte < 8 { u64::MAX << (8 * byte) } else { 0 };
        let short = match length {
            9..=SHORT => {
                let last = u64::from_le_bytes(*subject.last_chunk()?);
                Self {
                    head: u64::from_le_bytes(*subject.first_chunk()?),
                    tail: last >> (8 * (SHORT - length)) | from(length - 8),
                }
            }
            8 => Self { head: u64::from_le_bytes(*subject.first_chunk()?), tail: u64::MAX },
            4..=7 => {
                let first = u32::from_le_bytes(*subject.first_chunk()?);
                let last = u32::from_le_bytes(*subject.last_chunk()?);
                let text = u64::from(first) | u64::from(last) << (8 * (length - 4));
                Self { head: text | from(length), tail: u64::MAX }
            }
            0..=3 => {
                let text = subject.iter().rev().fold(0, |text, byte| text << 8 | u64::from(*byte));
                Self { head: text | from(length), tail: u64::MAX }
            }
            _ => return None,
        };
        Some(short)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn short_subjects_round_trip(subject in "\\PC{0,17}") {
            let Some(text) = ShortText::new(subject.as_bytes()) else {
                prop_assert!(subject.len() > SHORT);
                prop_assert_eq!(ShortSubject::new(subject.as_bytes()), None);
                return Ok(());
            };
            prop_assert_eq!(text.text(), subject.as_bytes());
            prop_assert_eq!(ShortSubject::new(subject.as_bytes()), Some(text.as_short()));
        }

        #[test]
        fn long_subjects_equal_only_themselves(
            subject in "[ab]{17,49}", changed in 0usize..49, other_length in 0usize..60
        ) {
            let Some(text) = LongText::new(subject.as_bytes()) else {
                prop_assert!(subject.len() > LONG);
                return Ok(());
            };
            prop_assert_eq!(text.text(), subject.as_bytes());
            prop_assert!(text.equals(subject.as_bytes()));
            let mut other = subject.clone().into_bytes();
            if let Some(byte) = other.get_mut(changed) {
                *byte = b'c';
                prop_assert!(!text.equals(&other));
            }
            let mut other = subject.into_bytes();
            let is_same = other.len() == other_length;
            other.resize(other_length, b'a');
            prop_assert_eq!(text.equals(&other), is_same);
        }
    }
}
