//! Packed encoding of a token bucket and its subject in 31 bytes. A short subject is inline, a long one boxed.

use super::registry::{Entries, LimitId};
use crate::algorithm::{Bucket, Op, Reply, TokenBucket};
use crate::time::Timestamp;

/// Maximum length of a short subject in bytes.
const LENGTH: usize = 15;

/// Padding byte, which never occurs in UTF-8.
const PADDING: u8 = 0xFF;

/// A padded short subject as two overlapping integers, its first and its last eight bytes, so that a
/// comparison is two integer comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShortSubject {
    head: u64,
    tail: u64,
}

/// A short subject as bytes with padding.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaddedSubject([u8; LENGTH]);

/// A token bucket in 16 bytes. Time and deficit are below 2^54, so their highest bytes hold the two bytes
/// of the limit's id.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedBucket {
    at: u64,
    deficit: u64,
}

impl PackedBucket {
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
    pub(super) fn limit(&self) -> LimitId {
        LimitId::from_bytes([self.at.to_be_bytes()[0], self.deficit.to_be_bytes()[0]])
    }

    #[inline]
    pub(super) fn new(limit: LimitId, bucket: &Bucket) -> Self {
        let [high, low] = limit.to_bytes().map(u64::from);
        Self { at: high << 56 | bucket.at(), deficit: low << 56 | bucket.deficit() }
    }

    /// Applies `op` with the parameters of `limit`.
    #[inline(always)]
    pub(super) fn step(
        self,
        limit: LimitId,
        parameters: &TokenBucket,
        now: Timestamp,
        op: Op,
    ) -> (Reply, Self) {
        let mut bucket = parameters.state(self.at(), self.deficit());
        let reply = parameters.step(&mut bucket, now.as_micros(), op);
        (reply, Self::new(limit, &bucket))
    }

    pub(super) fn unpack(&self, entries: &Entries) -> Bucket {
        entries.bucket(self.limit(), self.at(), self.deficit())
    }
}

/// A token bucket in 15 bytes, for a table slot that also holds a pointer: 53 bits of time, 54 bits of
/// deficit and 13 bits of the limit's id.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompactBucket([u8; 15]);

impl From<PackedBucket> for CompactBucket {
    #[inline]
    fn from(packed: PackedBucket) -> Self {
        let limit = u128::from(u16::from_be_bytes(packed.limit().to_bytes()));
        let bits = u128::from(packed.at()) | u128::from(packed.deficit()) << 53 | limit << 107;
        let [bytes @ .., _] = bits.to_le_bytes();
        Self(bytes)
    }
}

impl From<CompactBucket> for PackedBucket {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "extracts bit fields")]
    fn from(tight: CompactBucket) -> Self {
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

impl PaddedSubject {
    #[inline]
    pub(super) fn short(&self) -> ShortSubject {
        let [head @ .., _, _, _, _, _, _, _] = self.0;
        let [_, _, _, _, _, _, _, tail @ ..] = self.0;
        ShortSubject { head: u64::from_le_bytes(head), tail: u64::from_le_bytes(tail) }
    }

    pub(super) fn text(&self) -> &[u8] {
        let length = self.0.iter().position(|byte| *byte == PADDING).unwrap_or(LENGTH);
        self.0.get(..length).unwrap_or_default()
    }
}

impl ShortSubject {
    /// Packs the subject from overlapping chunks of constant size. Returns `None` if it is too long.
    #[inline]
    pub(super) fn new(subject: &[u8]) -> Option<Self> {
        let length = subject.len();
        // Mask with all bits set from this byte on: the padding after the text.
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

    pub(super) fn padded(self) -> PaddedSubject {
        let (head, tail) = (self.head.to_le_bytes(), self.tail.to_le_bytes());
        let mut bytes = [PADDING; LENGTH];
        // The last byte of the head equals the first byte of the tail.
        let joined = head.into_iter().chain(tail.into_iter().skip(1));
        for (to, from) in bytes.iter_mut().zip(joined) {
            *to = from;
        }
        PaddedSubject(bytes)
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
        fn short_subjects_round_trip(subject in "\\PC{0,16}") {
            let Some(short) = ShortSubject::new(subject.as_bytes()) else {
                prop_assert!(subject.len() > LENGTH);
                return Ok(());
            };
            let padded = short.padded();
            prop_assert_eq!(padded.text(), subject.as_bytes());
            prop_assert_eq!(padded.short(), short);
        }

        #[test]
        fn packed_buckets_round_trip(at in 0u64..1 << 53, deficit in 0u64..=1 << 53, id in 0u16..1 << 13) {
            let id = LimitId::from_bytes(id.to_be_bytes());
            let quota = Quota::new(1, Duration::from_micros(1));
            let limit = Limit::token_bucket(quota).unwrap();
            let bucket = limit.parameters().as_token_bucket().unwrap().state(at, deficit);
            let packed = PackedBucket::new(id, &bucket);
            for packed in [packed, PackedBucket::from(CompactBucket::from(packed))] {
                prop_assert_eq!((packed.at(), packed.deficit()), (at, deficit));
                prop_assert_eq!(packed.limit(), id);
            }
        }
    }
}
