//! Token bucket in exact fractions of a token.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use tollgate::algorithm::Parameters;

use super::reservation::{GivenBack, Note, Taken};
use super::{Holder, MAX_EXACT, Model};
use crate::spec::LimitSpec;

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    at: u64,
    missing: BigRational,
    /// Parameters of the last update: tokens per microsecond, and the burst.
    rate: BigRational,
    burst: BigRational,
    given_back: GivenBack,
    /// Cached result of `enforced` for the last spec.
    enforced: Option<(LimitSpec, Enforced)>,
}

/// Enforced rate in tokens per microsecond, and number of equal parts (grains) of a token.
#[derive(Debug, Clone)]
struct Enforced {
    rate: BigRational,
    parts: BigRational,
}

impl Default for Bucket {
    fn default() -> Self {
        let zero = BigRational::zero();
        Self {
            at: 0,
            missing: zero.clone(),
            rate: zero.clone(),
            burst: zero,
            given_back: GivenBack::default(),
            enforced: None,
        }
    }
}

fn ratio(n: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(n))
}

fn enforced(spec: &LimitSpec) -> Enforced {
    // The library rounds down a rate that does not fit 2^53, which another test checks.
    let limit = spec.build();
    let (tokens, micros) = if let Ok(Parameters::TokenBucket(bucket)) =
        limit.as_ref().map(tollgate::Limit::parameters)
    {
        bucket.rate()
    } else {
        (spec.count, spec.window_us)
    };
    Enforced { rate: ratio(tokens) / ratio(micros), parts: ratio(micros) }
}

impl Bucket {
    /// Grains in a token.
    fn parts(&self) -> BigRational {
        self.enforced.as_ref().map_or_else(|| ratio(1), |(_, enforced)| enforced.parts.clone())
    }

    /// Returns what settlements gave back since a reservation noted the sum; all tokens if that is not known.
    fn given_back_since(&self, note: &Note) -> BigRational {
        match self.given_back.restarts == note.given_back.restarts {
            true => &self.given_back.total - &note.given_back.total,
            false => note.missing.clone(),
        }
    }

    fn add_given_back(&mut self, tokens: &BigRational) {
        let total = &self.given_back.total + tokens;
        let GivenBack { restarts, .. } = self.given_back;
        self.given_back = match &total * self.parts() > ratio(MAX_EXACT) {
            true => GivenBack { restarts: restarts + 1, total: tokens.clone() },
            false => GivenBack { restarts, total },
        };
    }
}

impl Model for Bucket {
    fn settle(&mut self, spec: &LimitSpec, now: u64) -> bool {
        let ahead = self.at > now;
        if !ahead {
            self.missing -= &self.rate * ratio(now - self.at);
            if self.missing.is_negative() {
                self.missing = BigRational::zero();
            }
        }
        self.at = now;
        let known = self.enforced.take().filter(|(of, _)| of == spec);
        let (_, enforced) =
            self.enforced.insert(known.unwrap_or_else(|| (spec.clone(), enforced(spec))));
        let Enforced { rate, parts } = enforced.clone();
        let burst = ratio(spec.capacity());
        let changed = (&self.rate, &self.burst) != (&rate, &burst);
        if changed && !self.missing.is_zero() {
            let share = &self.missing / &self.burst;
            self.missing = (share * &burst * &parts).ceil() / parts;
        }
        (self.rate, self.burst) = (rate, burst);
        !self.missing.is_zero() && (ahead || changed)
    }

    fn has_room(&self, spec: &LimitSpec, _: u64, cost: u64) -> bool {
        &self.missing + ratio(cost) <= ratio(spec.capacity())
    }

    fn take(&mut self, _: &LimitSpec, _: u64, cost: u64, _: Option<Holder>) {
        self.missing += ratio(cost);
    }

    fn leasable(&self, spec: &LimitSpec, remaining: u64, hold: u64) -> u64 {
        let refilled = (&self.rate * ratio(hold)).ceil().to_integer().to_u64().unwrap_or(u64::MAX);
        remaining.min(spec.capacity().saturating_sub(refilled))
    }

    /// As if the tokens were taken at the end of the lease, by which time the bucket is as full as it can be.
    fn lease(&mut self, _: &LimitSpec, _: u64, amount: u64, hold: u64) {
        let refilled = &self.rate * ratio(hold);
        self.missing = self.missing.clone().max(refilled) + ratio(amount);
    }

    fn refund(&mut self, _: &LimitSpec, _: u64, cost: u64) -> bool {
        let missing = (&self.missing - ratio(cost)).max(BigRational::zero());
        std::mem::replace(&mut self.missing, missing) != self.missing
    }

    fn debit(&mut self, spec: &LimitSpec, _: u64, cost: u64, age: u64) -> bool {
        let still_owed = ratio(cost.min(spec.capacity())) - &self.rate * ratio(age);
        let missing = &self.missing + still_owed.max(BigRational::zero());
        let missing = missing.min(self.burst.clone());
        std::mem::replace(&mut self.missing, missing) != self.missing
    }

    fn note(&self) -> Note {
        Note { missing: self.missing.clone(), given_back: self.given_back.clone() }
    }

    /// Gives back what the bucket surely owes for the take: less the refill that it would have lost without it.
    fn give_back(&mut self, spec: &LimitSpec, now: u64, amount: u64, taken: &Taken) -> u64 {
        let wanted = ratio(amount.min(spec.capacity()));
        let missing = &taken.note.missing - self.given_back_since(&taken.note);
        let owed = wanted.clone().max(missing) - &self.rate * ratio(now - taken.at);
        let tokens = wanted.min(owed).min(self.missing.clone()).max(BigRational::zero());
        self.missing -= &tokens;
        self.add_given_back(&tokens);
        tokens.ceil().to_integer().to_u64().unwrap_or(u64::MAX)
    }

    fn overdraw(&mut self, spec: &LimitSpec, _: u64, amount: u64) -> u64 {
        let largest = (ratio(2 * spec.capacity())).min(ratio(MAX_EXACT) / self.parts());
        let room = (largest - &self.missing).max(BigRational::zero()).floor();
        let amount = amount.min(room.to_integer().to_u64().unwrap_or(u64::MAX));
        self.missing += ratio(amount);
        amount
    }

    fn debt(&self, spec: &LimitSpec, _: u64) -> u64 {
        let over = &self.missing - ratio(spec.capacity());
        over.max(BigRational::zero()).ceil().to_integer().to_u64().unwrap_or(u64::MAX)
    }

    fn used(&self, spec: &LimitSpec, _: u64) -> u64 {
        let used = self.missing.ceil().to_integer().to_u64().unwrap_or(u64::MAX);
        used.min(spec.capacity())
    }

    fn reset_after(&self, _: &LimitSpec, _: u64) -> u64 {
        (&self.missing / &self.rate).ceil().to_integer().to_u64().unwrap_or(u64::MAX)
    }

    fn guess_wait(&self, spec: &LimitSpec, _: u64, cost: u64) -> u64 {
        let over = &self.missing + ratio(cost) - ratio(spec.capacity());
        (over / &self.rate).ceil().to_integer().to_u64().unwrap_or(1)
    }
}
