//! Token bucket: a burst that refills at a constant rate.
//!
//! A bucket stores its **deficit** in *grains*. With the rate in lowest terms, `give` tokens per
//! `grains` microseconds, one token is `grains` grains and every microsecond refills `give` grains, so
//! no fraction is lost. Absent state is a deficit of zero, a full bucket.

use super::adjustment::{Adjustment, Change};
use super::arithmetic::{gcd, largest_below, mul_div_ceil};
use super::saved::Saved;
use super::{Op, Reply, Verdict, Wait};
use crate::fields::{Fields, put_longs};
use crate::quota::{Quota, QuotaError, QuotaErrorKind};
use crate::time::{MAX_EXACT, saturating_micros};

/// Maximum relative loss of a rate that is rounded down to fit 2^53: one part in this many.
const MAX_LOSS: u128 = 1_000_000_000;

/// Parameters of a token bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenBucket {
    burst: u64,
    give: u64,
    grains: u64,
    capacity: u64,
}

/// State of one bucket, with the parameters it was written with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    at: u64,
    deficit: u64,
    give: u64,
    capacity: u64,
}

/// Result of a take, without figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BucketTake {
    wait: Wait,
    deficit: u64,
}

impl BucketTake {
    #[inline]
    pub(crate) const fn verdict(self) -> Verdict {
        self.wait.verdict()
    }

    #[inline]
    pub(crate) const fn is_allowed(self) -> bool {
        self.wait.0 == 0
    }

    /// Sort key for refusals, as of [`Reply::severity`].
    #[inline]
    pub(crate) const fn severity(self) -> u64 {
        self.wait.0
    }

    /// Used quota in grains.
    #[inline]
    pub(crate) const fn deficit(self) -> u64 {
        self.deficit
    }
}

impl TokenBucket {
    pub(crate) fn new(quota: &Quota) -> Result<Self, QuotaError> {
        let burst = quota.max_burst();
        let common = gcd(quota.count(), quota.period_micros());
        let (count, period) = (quota.count() / common, quota.period_micros() / common);
        let max_grains = MAX_EXACT / burst;
        let (give, grains) = if period <= max_grains {
            (count, period)
        } else {
            largest_below(count, period, max_grains)
        };
        // wanted = count/period, given = give/grains: an error if given < wanted·(1 − 1/MAX_LOSS).
        let wanted = u128::from(count) * u128::from(grains);
        let given = u128::from(give) * u128::from(period);
        if (wanted - given).saturating_mul(MAX_LOSS) > wanted {
            return Err(QuotaError::built(
                QuotaErrorKind::Precision,
                format!(
                    "a token bucket of {}/{:?} with burst {burst} needs more than 2^53 steps; \
                     lower the burst or choose a rounder rate",
                    quota.count(),
                    quota.period(),
                ),
            ));
        }
        Ok(Self { burst, give, grains, capacity: burst * grains })
    }

    /// Maximum cost of one take.
    #[must_use]
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// Enforced rate in lowest terms: tokens, and the microseconds in which they refill.
    ///
    /// Equals the quota's rate if that fits 2^53, otherwise the largest lower rate that fits.
    #[must_use]
    pub fn rate(&self) -> (u64, u64) {
        (self.give, self.grains)
    }

    /// Takes from a bucket. [`reply`](Self::reply_to) computes the figures, which need divisions.
    #[inline(always)]
    pub(crate) fn take(&self, state: &mut Bucket, now: u64, cost: u64) -> BucketTake {
        let (mut bucket, repaired) = self.settle(*state, now);
        let deficit = bucket.deficit;
        let wait = self.wait(deficit, cost);
        if wait == Wait::NONE {
            bucket.deficit += cost * self.grains;
        }
        if repaired || bucket.deficit != deficit {
            *state = bucket;
        }
        BucketTake { wait, deficit: bucket.deficit }
    }

    /// Evaluates a take from a bucket with these parameters, without taking. Returns `None` if the bucket needs repair,
    /// because its time is later than `now`.
    #[inline(always)]
    pub(crate) fn evaluate(&self, bucket: &Bucket, now: u64, cost: u64) -> Option<BucketTake> {
        if bucket.at > now {
            return None;
        }
        let deficit = bucket.deficit_at(now);
        Some(BucketTake { wait: self.wait(deficit, cost), deficit })
    }

    /// Returns an evaluated take that passes as one that is taken.
    #[inline(always)]
    pub(crate) const fn taken(&self, evaluated: BucketTake, cost: u64) -> BucketTake {
        BucketTake { deficit: evaluated.deficit + cost * self.grains, ..evaluated }
    }

    /// Returns the reply to a take.
    #[inline]
    pub(crate) const fn reply_to(&self, take: BucketTake) -> Reply {
        self.reply(take.wait, take.deficit)
    }

    #[inline(always)]
    pub(crate) fn step(&self, state: &mut Bucket, now: u64, op: Op) -> Reply {
        let (mut bucket, repaired) = self.settle(*state, now);
        let deficit = bucket.deficit;
        let mut wait = Wait::NONE;
        match op {
            Op::Take { cost } | Op::Hold { cost, .. } => {
                return self.reply_to(self.take(state, now, cost));
            }
            Op::Peek { cost } => wait = self.wait(deficit, cost),
            Op::Refund { cost } => {
                // In debt, more than a burst can be refunded.
                bucket.deficit = deficit.saturating_sub(cost.saturating_mul(self.grains));
            }
            Op::Debit { cost, age } => {
                let refilled = self.give.saturating_mul(saturating_micros(age));
                let owed = (cost.min(self.burst) * self.grains).saturating_sub(refilled);
                bucket.deficit = deficit.max(self.capacity.min(deficit + owed));
            }
            Op::Lease { amount, hold } => {
                let refilled = self.give.saturating_mul(saturating_micros(hold));
                let raised = deficit.max(refilled);
                wait = self.wait(raised, amount);
                if wait == Wait::NONE && amount > 0 {
                    bucket.deficit = raised + amount * self.grains;
                }
            }
        }
        if repaired || bucket.deficit != deficit {
            *state = bucket;
        }
        self.reply(wait, bucket.deficit)
    }

    pub(super) fn adjust(&self, state: &mut Bucket, now: u64, adjustment: Adjustment) -> Change {
        let (mut bucket, repaired) = self.settle(*state, now);
        let before = bucket.deficit;
        let change = match adjustment {
            Adjustment::GiveBack { amount, age, deficit } => {
                let refilled = self.give.saturating_mul(saturating_micros(age));
                let wanted = amount.min(self.burst) * self.grains;
                // Without the take, the bucket would have been full for at most this refill, and not at all while the
                // deficit was larger than what is given back.
                let owed = wanted.max(deficit).saturating_sub(refilled);
                let grains = wanted.min(owed).min(before);
                bucket.deficit = before - grains;
                Change { amount: grains.div_ceil(self.grains), grains }
            }
            Adjustment::Overdraw { amount } => {
                let room = max_deficit(self.capacity).saturating_sub(before) / self.grains;
                let amount = amount.min(room);
                bucket.deficit = before + amount * self.grains;
                Change::of(amount)
            }
        };
        if repaired || bucket.deficit != before {
            *state = bucket;
        }
        change
    }

    /// Returns the deficit of a bucket at `now`, in grains.
    pub(super) fn deficit(&self, state: &Bucket, now: u64) -> u64 {
        self.settle(*state, now).0.deficit
    }

    /// Creates a bucket state with these parameters.
    #[inline]
    pub(crate) const fn state(&self, at: u64, deficit: u64) -> Bucket {
        Bucket { at, deficit, give: self.give, capacity: self.capacity }
    }

    /// Returns the bucket at `now` under these parameters, and whether it must be stored (a repair).
    #[inline(always)]
    fn settle(&self, mut bucket: Bucket, now: u64) -> (Bucket, bool) {
        let ahead = bucket.at > now;
        if !ahead {
            bucket.deficit = bucket.deficit_at(now);
        }
        bucket.at = now;
        let renumbered = (bucket.give, bucket.capacity) != (self.give, self.capacity);
        if renumbered {
            // Keep the used *share*, so that nodes with old and new parameters agree on it.
            if bucket.deficit > 0 {
                let deficit = mul_div_ceil(bucket.deficit, self.capacity, bucket.capacity);
                bucket.deficit = deficit.min(max_deficit(self.capacity));
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
        // Not deficit + cost·grains, which could exceed 2^53.
        let room = (self.burst - cost) * self.grains;
        // A cost of 0 passes also in debt.
        if deficit <= room || cost == 0 {
            return Wait::NONE;
        }
        Wait((deficit - room).div_ceil(self.give))
    }

    #[inline(always)]
    const fn reply(&self, wait: Wait, deficit: u64) -> Reply {
        let (remaining, debt) = (self.remaining(deficit), self.debt(deficit));
        Reply { wait, remaining, debt, reset_after: self.reset_after(deficit) }
    }

    /// Returns the whole tokens that are left with this deficit.
    #[inline(always)]
    pub(crate) const fn remaining(&self, deficit: u64) -> u64 {
        self.burst.saturating_sub(deficit.div_ceil(self.grains))
    }

    /// Returns the whole tokens that this deficit exceeds the burst by.
    #[inline(always)]
    pub(crate) const fn debt(&self, deficit: u64) -> u64 {
        if deficit <= self.capacity {
            return 0;
        }
        deficit.div_ceil(self.grains).saturating_sub(self.burst)
    }

    /// Returns the microseconds until a bucket with this deficit is full, rounded up.
    #[inline(always)]
    pub(crate) const fn reset_after(&self, deficit: u64) -> u64 {
        deficit.div_ceil(self.give)
    }
}

/// Returns the largest deficit of a bucket: a debt of one further full bucket, within the exact numbers.
const fn max_deficit(capacity: u64) -> u64 {
    if capacity > MAX_EXACT / 2 { MAX_EXACT } else { 2 * capacity }
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

    /// Returns true if the bucket was written with these parameters.
    #[inline]
    pub(crate) const fn is_of(&self, parameters: &TokenBucket) -> bool {
        self.give == parameters.give && self.capacity == parameters.capacity
    }

    /// Returns the deficit at `now`. Requires `now >= self.at`.
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
        let (at, deficit) = (fields.timestamp()?, fields.exact()?);
        let (give, capacity) = (fields.exact()?, fields.exact()?);
        let is_sound = deficit == 0 || (give > 0 && deficit <= max_deficit(capacity));
        is_sound.then_some(Self { at, deficit, give, capacity })
    }
}
