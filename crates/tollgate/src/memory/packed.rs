//! Packed encoding of a token bucket in 15 bytes.

use super::registry::{Entries, LimitId};
use crate::algorithm::{Bucket, BucketTake, Op, Reply, TokenBucket};
use crate::time::Timestamp;

/// A token bucket in 15 bytes: 53 bits of time and 54 bits of deficit, with 3 and 10 bits of the limit's id above them. A
/// table slot stores it as [`PackedTime`] and an integer.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedBucket {
    at: u64,
    deficit: u64,
}

/// The time of a [`PackedBucket`] and 3 bits of its limit's id, without alignment: it shares an aligned word of the slot with
/// the tag of the slot's content. The parts are as large as possible: each is one memory access.
#[derive(Debug, Clone, Copy)]
#[repr(Rust, packed)]
pub(super) struct PackedTime {
    high: u8,
    middle: u16,
    low: u32,
}

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
        let PackedTime { high, middle, low } = time;
        let at = u64::from(high) << 48 | u64::from(middle) << 32 | u64::from(low);
        Self { at, deficit }
    }

    /// Returns the stored form.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "takes the parts of 56 bits")]
    pub(super) fn store(self) -> (PackedTime, u64) {
        let at = self.at;
        let time = PackedTime { high: (at >> 48) as u8, middle: (at >> 32) as u16, low: at as u32 };
        (time, self.deficit)
    }

    pub(super) fn unpack(&self, entries: &Entries) -> Bucket {
        entries.bucket(self.limit(), self.at(), self.deficit())
    }
}

/// A [`PackedBucket`] in its slot.
pub(super) struct PackedBucketMut<'s> {
    pub(super) time: &'s mut PackedTime,
    pub(super) deficit: &'s mut u64,
}

impl PackedBucketMut<'_> {
    pub(super) fn limit(&self) -> LimitId {
        PackedBucket::load(*self.time, *self.deficit).limit()
    }

    /// Takes from the bucket, with the parameters of its limit. Same as `step` with a take, without the figures.
    #[inline(always)]
    pub(super) fn take(
        self,
        limit: LimitId,
        parameters: &TokenBucket,
        now: Timestamp,
        cost: u64,
    ) -> BucketTake {
        let packed = PackedBucket::load(*self.time, *self.deficit);
        let mut bucket = parameters.state(packed.at(), packed.deficit());
        let take = parameters.take(&mut bucket, now.as_micros(), cost);
        (*self.time, *self.deficit) = PackedBucket::new(limit, &bucket).store();
        take
    }

    /// Replaces the bucket with one of the same limit.
    #[inline(always)]
    pub(super) fn set(self, limit: LimitId, bucket: &Bucket) {
        (*self.time, *self.deficit) = PackedBucket::new(limit, bucket).store();
    }

    /// Applies `op`, with the parameters of the bucket's limit.
    #[inline]
    pub(super) fn step(
        self,
        limit: LimitId,
        parameters: &TokenBucket,
        now: Timestamp,
        op: Op,
    ) -> Reply {
        let packed = PackedBucket::load(*self.time, *self.deficit);
        let mut bucket = parameters.state(packed.at(), packed.deficit());
        let reply = parameters.step(&mut bucket, now.as_micros(), op);
        (*self.time, *self.deficit) = PackedBucket::new(limit, &bucket).store();
        reply
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
