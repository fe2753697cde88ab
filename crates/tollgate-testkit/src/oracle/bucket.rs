//! A token bucket in exact fractions of a token.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use tollgate::algorithm::Parameters;

use super::Model;
use crate::spec::LimitSpec;

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    at: u64,
    missing: BigRational,
    /// The numbers it was last kept under: tokens per microsecond, and the burst.
    rate: BigRational,
    burst: BigRational,
    /// What the library made of the numbers last asked about.
    enforced: Option<(LimitSpec, Enforced)>,
}

/// Tokens per microsecond as enforced, and the number of equal parts a token is divided into.
#[derive(Debug, Clone)]
struct Enforced {
    rate: BigRational,
    parts: BigRational,
}

impl Default for Bucket {
    fn default() -> Self {
        let zero = BigRational::zero();
        Self { at: 0, missing: zero.clone(), rate: zero.clone(), burst: zero, enforced: None }
    }
}

fn whole(n: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(n))
}

fn enforced(spec: &LimitSpec) -> Enforced {
    // A rate that does not fit is enforced as the nearest below; that it is so has a test of its own.
    let limit = spec.build();
    match limit.as_ref().map(tollgate::Limit::parameters) {
        Ok(Parameters::TokenBucket(bucket)) => {
            let (tokens, micros) = bucket.rate();
            Enforced { rate: whole(tokens) / whole(micros), parts: whole(micros) }
        }
        _ => Enforced {
            rate: whole(spec.count) / whole(spec.window_us),
            parts: whole(spec.window_us),
        },
    }
}

impl Model for Bucket {
    fn settle(&mut self, spec: &LimitSpec, now: u64) -> bool {
        let ahead = self.at > now;
        if !ahead {
            self.missing -= &self.rate * whole(now - self.at);
            if self.missing.is_negative() {
                self.missing = BigRational::zero();
            }
        }
        self.at = now;
        let known = self.enforced.take().filter(|(of, _)| of == spec);
        let (_, numbers) =
            self.enforced.insert(known.unwrap_or_else(|| (spec.clone(), enforced(spec))));
        let Enforced { rate, parts } = numbers.clone();
        let burst = whole(spec.capacity());
        let renumbered = (&self.rate, &self.burst) != (&rate, &burst);
        if renumbered && !self.missing.is_zero() {
            let share = &self.missing / &self.burst;
            self.missing = (share * &burst * &parts).ceil() / parts;
        }
        (self.rate, self.burst) = (rate, burst);
        !self.missing.is_zero() && (ahead || renumbered)
    }

    fn has_room(&self, spec: &LimitSpec, _: u64, cost: u64) -> bool {
        &self.missing + whole(cost) <= whole(spec.capacity())
    }

    fn take(&mut self, _: &LimitSpec, _: u64, cost: u64, _: Option<u64>) {
        self.missing += whole(cost);
    }

    fn refund(&mut self, _: &LimitSpec, _: u64, cost: u64) -> bool {
        let missing = (&self.missing - whole(cost)).max(BigRational::zero());
        std::mem::replace(&mut self.missing, missing) != self.missing
    }

    fn debit(&mut self, spec: &LimitSpec, _: u64, cost: u64, age: u64) -> bool {
        let still_owed = whole(cost.min(spec.capacity())) - &self.rate * whole(age);
        let missing = &self.missing + still_owed.max(BigRational::zero());
        let missing = missing.min(self.burst.clone());
        std::mem::replace(&mut self.missing, missing) != self.missing
    }

    fn used(&self, _: &LimitSpec, _: u64) -> u64 {
        self.missing.ceil().to_integer().to_u64().unwrap_or(u64::MAX)
    }

    fn reset_after(&self, _: &LimitSpec, _: u64) -> u64 {
        (&self.missing / &self.rate).ceil().to_integer().to_u64().unwrap_or(u64::MAX)
    }
    fn guess_wait(&self, spec: &LimitSpec, _: u64, cost: u64) -> u64 {
        let over = &self.missing + whole(cost) - whole(spec.capacity());
        (over / &self.rate).ceil().to_integer().to_u64().unwrap_or(1)
    }
}
