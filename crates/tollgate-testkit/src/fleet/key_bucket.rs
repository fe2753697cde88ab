//! A token bucket in two numbers, to check admissions of millions of keys.

use tollgate::Limit;
use tollgate::algorithm::Parameters;

/// The rate and the capacity of a token bucket, in grains: one token is `grains`, and each microsecond refills `give`.
#[derive(Debug, Clone, Copy)]
pub(super) struct BucketRate {
    give: u64,
    grains: u64,
    capacity: u64,
}

impl BucketRate {
    pub(super) fn of(limit: &Limit) -> Self {
        let Parameters::TokenBucket(bucket) = limit.parameters() else {
            panic!("{limit:?} is no token bucket")
        };
        let (give, grains) = bucket.rate();
        Self { give, grains, capacity: bucket.burst() * grains }
    }
}

/// The deficit of a bucket that is debited when a request is admitted. Its limit holds if and only if the deficit never
/// exceeds the capacity: then no interval has more admissions than burst + rate × time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeyBucket {
    at: u64,
    deficit: u64,
}

impl KeyBucket {
    /// Debits one admission. Returns whether the limit still holds. Times are microseconds, in order.
    pub(super) fn admit(&mut self, now: u64, rate: BucketRate) -> bool {
        self.refill(now, rate);
        self.deficit += rate.grains;
        self.deficit <= rate.capacity
    }

    /// Debits one admission if the limit allows it.
    pub(super) fn try_admit(&mut self, now: u64, rate: BucketRate) -> bool {
        self.refill(now, rate);
        let is_allowed = self.deficit + rate.grains <= rate.capacity;
        self.deficit += if is_allowed { rate.grains } else { 0 };
        is_allowed
    }

    fn refill(&mut self, now: u64, rate: BucketRate) {
        let refilled = rate.give.saturating_mul(now - self.at);
        self.deficit = self.deficit.saturating_sub(refilled);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission_bound::AdmissionBound;
    use crate::random::Random;
    use tollgate::Quota;

    #[test]
    fn it_finds_the_same_violations_as_the_general_bound() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let quota = Quota::per_second(random.within(1, 1000)).burst(random.within(1, 100));
            let limit = Limit::token_bucket(quota).unwrap();
            let (rate, mut bound) = (BucketRate::of(&limit), AdmissionBound::new(&limit));
            let (mut bucket, mut now) = (KeyBucket::default(), 1_000_000_000);
            for _ in 0..500 {
                now += random.magnitude(20_000);
                let is_within = bound.admit(now, 1).is_ok();
                assert_eq!(bucket.admit(now, rate), is_within, "seed {seed}");
                if !is_within {
                    break;
                }
            }
        }
    }
}
