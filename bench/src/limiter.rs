//! A common interface to all limiters, and one quota that is never exhausted.
//!
//! The burst is larger than the longest run. A key needs a minute to refill after one decision, and
//! filling a store takes less than that: no limiter can drop a key, so all do the same work.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use governor::DefaultKeyedRateLimiter;
use throttlecrab::{AdaptiveStore, RateLimiter, Store};
use tollgate::{Clock, DefaultHasher, Limit, LocalLimiter, Quota, QuotaError};

use crate::Outcome;

pub(crate) const BURST: u32 = 100_000_000;
/// Refill time of one token.
pub(crate) const PER_TOKEN: Duration = Duration::from_secs(60);

/// A rate limiter under measurement.
pub trait Limiter: Sync {
    /// Decides one request with cost 1. Callable from any thread.
    #[expect(clippy::ptr_arg, reason = "governor requires &String for key lookups")]
    fn admit(&self, key: &String) -> bool;

    /// Like [`Limiter::admit`], with exclusive access and therefore without a lock.
    #[inline]
    fn admit_exclusive(&mut self, key: &String) -> bool {
        self.admit(key)
    }

    /// Returns the number of dropped keys, if known. A limiter that drops keys does different work,
    /// so its figures are invalid.
    fn dropped_keys(&self) -> u64 {
        0
    }
}

impl<C: Clock> Limiter for LocalLimiter<C, DefaultHasher> {
    #[inline]
    fn admit(&self, key: &String) -> bool {
        self.take(key).is_allowed()
    }

    fn dropped_keys(&self) -> u64 {
        self.occupancy().evicted
    }
}

/// A [`LocalLimiter`] that returns only the verdict of a decision.
#[derive(Debug)]
pub struct VerdictOnly(pub LocalLimiter);

impl Limiter for VerdictOnly {
    #[inline]
    fn admit(&self, key: &String) -> bool {
        self.0.check(key).is_allowed()
    }

    fn dropped_keys(&self) -> u64 {
        self.0.dropped_keys()
    }
}

impl Limiter for DefaultKeyedRateLimiter<String> {
    #[inline]
    fn admit(&self, key: &String) -> bool {
        self.check_key(key).is_ok()
    }
}

impl<S: Store + Send> Limiter for Mutex<RateLimiter<S>> {
    #[inline]
    fn admit(&self, key: &String) -> bool {
        self.lock().is_ok_and(|mut limiter| admits(&mut limiter, key))
    }

    #[inline]
    fn admit_exclusive(&mut self, key: &String) -> bool {
        self.get_mut().is_ok_and(|limiter| admits(limiter, key))
    }
}

#[inline]
fn admits<S: Store>(limiter: &mut RateLimiter<S>, key: &str) -> bool {
    let result = limiter.rate_limit(key, i64::from(BURST), 1, 60, 1, SystemTime::now());
    result.is_ok_and(|(allowed, _)| allowed)
}

/// Returns the common quota as a tollgate limit.
///
/// # Errors
/// Never, with these numbers.
pub fn limit() -> Result<Limit, QuotaError> {
    Limit::token_bucket(Quota::new(1, PER_TOKEN).burst(u64::from(BURST)))
}

/// Creates a governor limiter with its defaults and the common quota.
///
/// # Errors
/// Never, with these numbers.
pub fn governor() -> Outcome<DefaultKeyedRateLimiter<String>> {
    let quota = governor::Quota::with_period(PER_TOKEN).ok_or("governor rejected the period")?;
    Ok(DefaultKeyedRateLimiter::keyed(quota.allow_burst(BURST.try_into()?)))
}

/// Creates a throttlecrab limiter with the given store.
pub fn throttlecrab<S: Store>(store: S) -> Mutex<RateLimiter<S>> {
    Mutex::new(RateLimiter::new(store))
}

/// Creates throttlecrab's default store with a map that holds exactly `slots` keys if that is 7/8
/// of a power of two. throttlecrab allocates 1.3 times the capacity that it is given.
#[must_use]
pub fn adaptive_with_slots(slots: u32) -> Mutex<RateLimiter<AdaptiveStore>> {
    let capacity = slots as usize * 10 / 13;
    throttlecrab(AdaptiveStore::builder().capacity(capacity).build())
}
