//! Token buckets and their subjects in 31 bytes: of a short subject all of it, of a long one a pointer.

use super::register::{Entries, LimitNumber};
use crate::algorithm::{Bucket, Op, Reply, TokenBucket};
use crate::time::Timestamp;

/// The longest subject that can be short.
const LENGTH: usize = 15;

/// What no text in UTF-8 contains.
const PADDING: u8 = 0xFF;

/// A short subject, padded, as its first eight bytes and its last: to compare it is to compare two
/// words, without a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Short {
    head: u64,
    tail: u64,
}

/// A short subject's bytes, and padding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Padded([u8; LENGTH]);

/// A token bucket. Time and deficit are below 2^54; the two bytes of the limit's number take the
/// place of their highest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed {
    at: u64,
    deficit: u64,
}

impl Packed {
    const LOW: u64 = (1 << 56) - 1;

    #[inline]
    pub(super) fn at(&self) -> u64 {
        self.at & Self::LOW
    }

    #[inline]
    pub(super) fn deficit(&self) -> u64 {
        self.deficit & Self::LOW
    }

    #[inline]
    pub(super) fn limit(&self) -> LimitNumber {
        LimitNumber::from_bytes([self.at.to_be_bytes()[0], self.deficit.to_be_bytes()[0]])
    }

    #[inline]
    pub(super) fn new(limit: LimitNumber, bucket: &Bucket) -> Self {
        let [high, low] = limit.to_bytes().map(u64::from);
        Self { at: high << 56 | bucket.at(), deficit: low << 56 | bucket.deficit() }
    }

    /// Applies `op` under these numbers, which are those of `limit`.
    #[inline(always)]
    pub(super) fn step(
        self,
        limit: LimitNumber,
        numbers: &TokenBucket,
        now: Timestamp,
        op: Op,
    ) -> (Reply, Self) {
        let mut bucket = numbers.state(self.at(), self.deficit());
        let reply = numbers.step(&mut bucket, now.as_micros(), op);
        (reply, Self::new(limit, &bucket))
    }

    pub(super) fn unpack(&self, entries: &Entries) -> Bucket {
        entries.bucket(self.limit(), self.at(), self.deficit())
    }
}

/// The same in a byte less, for a bucket that shares its slot with a pointer: 53 bits of time, 54 of
/// deficit, 13 of the limit's number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tight([u8; 15]);

impl From<Packed> for Tight {
    #[inline]
    fn from(packed: Packed) -> Self {
        let limit = u128::from(u16::from_be_bytes(packed.limit().to_bytes()));
        let bits = u128::from(packed.at()) | u128::from(packed.deficit()) << 53 | limit << 107;
        let [bytes @ .., _] = bits.to_le_bytes();
        Self(bytes)
    }
}

impl From<Tight> for Packed {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the parts of what was joined")]
    fn from(tight: Tight) -> Self {
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(tight.0) {
            *to = from;
        }
        let bits = u128::from_le_bytes(bytes);
        let [high, low] = ((bits >> 107) as u16).to_be_bytes().map(u64::from);
        Self {
            at: high << 56 | bits as u64 & ((1 << 53) - 1),
            deficit: low << 56 | (bits >> 53) as u64 & ((1 << 54) - 1),
        }
    }
}

impl Padded {
    #[inline]
    pub(super) fn short(&self) -> Short {
        let [head @ .., _, _, _, _, _, _, _] = self.0;
        let [_, _, _, _, _, _, _, tail @ ..] = self.0;
        Short { head: u64::from_le_bytes(head), tail: u64::from_le_bytes(tail) }
    }

    pub(super) fn text(&self) -> &[u8] {
        let length = self.0.iter().position(|byte| *byte == PADDING).unwrap_or(LENGTH);
        self.0.get(..length).unwrap_or_default()
    }
}

impl Short {
    /// The subject's words, put together from overlapping pieces of known length.
    #[inline]
    pub(super) fn new(subject: &[u8]) -> Option<Self> {
        let length = subject.len();
        // Ones from this byte on: what lies behind the text is padding.
        let from = |byte: usize| if byte < 8 { u64::MAX << (8 * byte) } else { 0 };
        let short = match length {
            8..=LENGTH => {
                let last = u64::from_le_bytes(*subject.last_chunk()?);
                Self {
                    head: u64::from_le_bytes(*subject.first_chunk()?),
                    tail: last >> (8 * (LENGTH - length)) | from(length - 7),
                }
            }
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

    pub(super) fn padded(self) -> Padded {
        let (head, tail) = (self.head.to_le_bytes(), self.tail.to_le_bytes());
        let mut bytes = [PADDING; LENGTH];
        // The last byte of the head is the first of the tail.
        let together = head.into_iter().chain(tail.into_iter().skip(1));
        for (to, from) in bytes.iter_mut().zip(together) {
            *to = from;
        }
        Padded(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::{Limit, Quota};

    proptest! {
        #[test]
        fn short_subjects_come_back(subject in "\\PC{0,16}") {
            let Some(short) = Short::new(subject.as_bytes()) else {
                prop_assert!(subject.len() > LENGTH);
                return Ok(());
            };
            let padded = short.padded();
            prop_assert_eq!(padded.text(), subject.as_bytes());
            prop_assert_eq!(padded.short(), short);
        }

        #[test]
        fn packed_numbers_come_back(at in 0u64..1 << 53, deficit in 0u64..=1 << 53, rate in 0u16..1 << 13) {
            let rate = rate.to_be_bytes();
            let quota = Quota::new(1, Duration::from_micros(1));
            let limit = Limit::token_bucket(quota).unwrap();
            let bucket = limit.parameters().as_token_bucket().unwrap().state(at, deficit);
            let packed = Packed::new(LimitNumber::from_bytes(rate), &bucket);
            for packed in [packed, Packed::from(Tight::from(packed))] {
                prop_assert_eq!((packed.at(), packed.deficit()), (at, deficit));
                prop_assert_eq!(packed.limit(), LimitNumber::from_bytes(rate));
            }
        }
    }
}
