//! Packed encoding of a token bucket and its subject in 31 bytes. A short subject is inline, a long one boxed.

use super::registry::{Entries, LimitId};
use crate::algorithm::{Bucket, Op, Reply, TokenBucket};
use crate::time::Timestamp;

/// Maximum length of a short subject in bytes.
const LENGTH: usize = 16;

/// Padding byte, which never occurs in UTF-8.
const PADDING: u8 = 0xFF;

/// A padded short subject as two integers, so that a comparison is two integer comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShortSubject {
    head: u64,
    tail: u64,
}

/// A short subject as bytes with padding.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaddedSubject([u8; LENGTH]);

/// A token bucket in 15 bytes: 53 bits of time and 54 bits of deficit, with 3 and 10 bits of the limit's id above them. A
/// table slot stores it as [`PackedTime`] and an integer.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedBucket {
    at: u64,
    deficit: u64,
}

/// The time of a [`PackedBucket`] and 3 bits of its limit's id, without alignment: it shares an aligned word of the slot with
/// the tag of the slot's content.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedTime([u8; 7]);

const TIME_BITS: u32 = 53;
const DEFICIT_BITS: u32 = 54;
/// Bits of the limit's id beside the time.
const LOW_ID_BITS: u32 = 3;

impl PackedBucket {
    #[inline]
    pub(super) fn at(&self) -> u64 {
        self.at & ((1 << TIME_BITS) - 1)
    }

    #[inline]
    pub(super) fn deficit(&self) -> u64 {
        self.deficit & ((1 << DEFICIT_BITS) - 1)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "10 and 3 bits")]
    pub(super) fn limit(&self) -> LimitId {
        let id = self.deficit >> DEFICIT_BITS << LOW_ID_BITS | self.at >> TIME_BITS;
        LimitId::from_bits(id as u16)
    }

    #[inline]
    pub(super) fn new(limit: LimitId, bucket: &Bucket) -> Self {
        let id = u64::from(limit.bits());
        let low = id & ((1 << LOW_ID_BITS) - 1);
        Self {
            at: low << TIME_BITS | bucket.at(),
            deficit: id >> LOW_ID_BITS << DEFICIT_BITS | bucket.deficit(),
        }
    }

    /// Restores a bucket from its stored form.
    #[inline]
    pub(super) fn load(time: PackedTime, deficit: u64) -> Self {
        let [a, b, c, d, e, f, g] = time.0;
        Self { at: u64::from_le_bytes([a, b, c, d, e, f, g, 0]), deficit }
    }

    /// Returns the stored form.
    #[inline]
    pub(super) fn store(self) -> (PackedTime, u64) {
        let [bytes @ .., _] = self.at.to_le_bytes();
        (PackedTime(bytes), self.deficit)
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

impl PaddedSubject {
    #[inline]
    pub(super) fn short(&self) -> ShortSubject {
        let [head @ .., _, _, _, _, _, _, _, _] = self.0;
        let [_, _, _, _, _, _, _, _, tail @ ..] = self.0;
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
            9..=LENGTH => {
                let last = u64::from_le_bytes(*subject.last_chunk()?);
                Self {
                    head: u64::from_le_bytes(*subject.first_chunk()?),
                    tail: last >> (8 * (LENGTH - length)) | from(length - 8),
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

    pub(super) fn padded(self) -> PaddedSubject {
        let (head, tail) = (self.head.to_le_bytes(), self.tail.to_le_bytes());
        let mut bytes = [PADDING; LENGTH];
        for (to, from) in bytes.iter_mut().zip(head.into_iter().chain(tail)) {
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
        fn short_subjects_round_trip(subject in "\\PC{0,17}") {
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
            let id = LimitId::from_bits(id);
            let quota = Quota::new(1, Duration::from_micros(1));
            let limit = Limit::token_bucket(quota).unwrap();
            let bucket = limit.parameters().as_token_bucket().unwrap().state(at, deficit);
            let (time, rest) = PackedBucket::new(id, &bucket).store();
            let packed = PackedBucket::load(time, rest);
            prop_assert_eq!((packed.at(), packed.deficit()), (at, deficit));
            prop_assert_eq!(packed.limit(), id);
        }
    }
}
