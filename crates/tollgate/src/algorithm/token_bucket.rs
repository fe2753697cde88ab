//! Token bucket: a burst, refilled evenly.
//!
//! A bucket keeps its **deficit** in *grains*. With the rate in lowest terms, `give` tokens per
//! `grains` microseconds, one token is `grains` grains and every microsecond gives back `give` of
//! them: no fraction is ever lost. Nothing stored means a deficit of zero, a full bucket.

use super::arithmetic::{gcd, largest_below, mul_div_ceil};
use super::saved::Saved;
use super::{Op, Reply, Wait};
use crate::error::{QuotaError, QuotaErrorKind};
use crate::fields::{Fields, put_longs};
use crate::quota::Quota;
use crate::time::MAX_EXACT;

/// A rate that needs finer grains than fit may lose one part in this many, never gain.
const WORST_LOSS: u128 = 1_000_000_000;

/// A token bucket's numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenBucket {
    burst: u64,
    give: u64,
    grains: u64,
    capacity: u64,
}

/// One key's bucket, with the numbers it was written under.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    at: u64,
    deficit: u64,
    give: u64,
    capacity: u64,
}

impl TokenBucket {
    pub(crate) fn new(quota: &Quota) -> Result<Self, QuotaError> {
        let burst = quota.max_burst();
        let common = gcd(quota.count(), quota.period_micros());
        let (count, period) = (quota.count() / common, quota.period_micros() / common);
        let most_grains = MAX_EXACT / burst;
        let (give, grains) = if period <= most_grains {
            (count, period)
        } else {
            largest_below(count, period, most_grains)
        };
        // wanted = count/period, given = give/grains: refuse if given < wanted·(1 − 1/WORST_LOSS).
        let wanted = u128::from(count) * u128::from(grains);
        let given = u128::from(give) * u128::from(period);
        if (wanted - given).saturating_mul(WORST_LOSS) > wanted {
            return Err(QuotaError::built(
                QuotaErrorKind::Precision,
                format!(
                    "a token bucket of {}/{:?} with burst {burst} needs finer steps than 2^53 can \
                     count; lower the burst or choose a rounder rate",
                    quota.count(),
                    quota.period(),
                ),
            ));
        }
        Ok(Self { burst, give, grains, capacity: burst * grains })
    }

    /// How many may pass at once.
    #[must_use]
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// The rate as it is enforced, in lowest terms: so many tokens per so many microseconds.
    ///
    /// It is the quota's own unless that passes 2^53, and then the nearest below.
    #[must_use]
    pub fn rate(&self) -> (u64, u64) {
        (self.give, self.grains)
    }

    #[inline(always)]
    pub(crate) fn step(&self, state: &mut Bucket, now: u64, op: Op) -> Reply {
        let (mut bucket, repaired) = self.settle(*state, now);
        let deficit = bucket.deficit;
        let mut wait = Wait::NONE;
        match op {
            Op::Take { cost } | Op::Hold { cost, .. } => {
                wait = self.wait(deficit, cost);
                if wait == Wait::NONE {
                    bucket.deficit += cost * self.grains;
                }
            }
            Op::Peek { cost } => wait = self.wait(deficit, cost),
            Op::Refund { cost } => {
                bucket.deficit = deficit.saturating_sub(cost.min(self.burst) * self.grains);
            }
            Op::Debit { cost, age } => {
                let refilled = self.give.saturating_mul(crate::time::saturating_micros(age));
                let owed = (cost.min(self.burst) * self.grains).saturating_sub(refilled);
                bucket.deficit = self.capacity.min(deficit + owed);
            }
        }
        if repaired || bucket.deficit != deficit {
            *state = bucket;
        }
        self.reply(wait, bucket.deficit)
    }

    /// A bucket of these numbers.
    #[inline]
    pub(crate) const fn state(&self, at: u64, deficit: u64) -> Bucket {
        Bucket { at, deficit, give: self.give, capacity: self.capacity }
    }

    /// The bucket as it is now, under these numbers, and whether that must be written down.
    #[inline(always)]
    fn settle(&self, mut bucket: Bucket, now: u64) -> (Bucket, bool) {
        let ahead = bucket.at > now;
        if !ahead {
            bucket.deficit = bucket.deficit_at(now);
        }
        bucket.at = now;
        let renumbered = (bucket.give, bucket.capacity) != (self.give, self.capacity);
        if renumbered {
            // The used *share* stays used: nodes with old and new numbers then agree on it.
            if bucket.deficit > 0 {
                bucket.deficit = mul_div_ceil(bucket.deficit, self.capacity, bucket.capacity);
            }
            bucket.give = self.give;
            bucket.capacity = self.capacity;
        }
        (bucket, bucket.deficit > 0 && (ahead || renumbered))
    }

    #[inline(always)]
    fn wait(&self, deficit: u64, cost: u64) -> Wait {
        if cost > self.burst {
            return Wait::FOREVER;
        }
        // Never deficit + cost·grains: that could pass 2^53.
        let room = (self.burst - cost) * self.grains;
        if deficit <= room { Wait::NONE } else { Wait((deficit - room).div_ceil(self.give)) }
    }

    #[inline(always)]
    fn reply(&self, wait: Wait, deficit: u64) -> Reply {
        let remaining = self.burst - deficit.div_ceil(self.grains);
        Reply { wait, remaining, reset_after: deficit.div_ceil(self.give) }
    }
}

impl Bucket {
    #[inline]
    pub(crate) const fn at(&self) -> u64 {
        self.at
    }

    #[inline]
    pub(crate) const fn deficit(&self) -> u64 {
        self.deficit
    }

    /// Whether it was written under these numbers.
    #[inline]
    pub(crate) const fn is_of(&self, numbers: &TokenBucket) -> bool {
        self.give == numbers.give && self.capacity == numbers.capacity
    }

    /// What is left of the deficit at `now`, which is not before the bucket's own time.
    #[inline]
    fn deficit_at(&self, now: u64) -> u64 {
        self.deficit.saturating_sub(self.give.saturating_mul(now - self.at))
    }

    #[inline]
    pub(super) fn is_fresh(&self, now: u64) -> bool {
        self.deficit == 0 || (self.at <= now && self.deficit_at(now) == 0)
    }
}

impl Saved for Bucket {
    fn save(&self, out: &mut Vec<u8>) {
        put_longs(out, [self.at, self.deficit, self.give, self.capacity]);
    }

    fn load(fields: &mut Fields<'_>) -> Option<Self> {
        let (at, deficit) = (fields.moment()?, fields.exact()?);
        let (give, capacity) = (fields.exact()?, fields.exact()?);
        let is_sound = deficit == 0 || (give > 0 && deficit <= capacity);
        is_sound.then_some(Self { at, deficit, give, capacity })
    }
}
