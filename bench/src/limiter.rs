//! One call for every limiter, and one quota that none of them ever refuses.
//!
//! The burst outlasts the longest run, and after one decision a key is not fresh again for a minute,
//! which no store takes to fill: no entrant gets to drop a key, so all of them do the same work.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use governor::DefaultKeyedRateLimiter;
use throttlecrab::{AdaptiveStore, RateLimiter, Store};
use tollgate::{Clock, DefaultHasher, Limit, LocalLimiter, Quota, QuotaError};

use crate::Outcome;

pub(crate) const BURST: u32 = 100_000_000;
/// What one token takes to come back.
pub(crate) const PER_TOKEN: Duration = Duration::from_secs(60);

/// Decides one request of one key.
pub trait Limiter: Sync {
    /// Whether it may pass, asked by any thread.
    #[expect(clippy::ptr_arg, reason = "governor looks its keys up by &String")]
    fn admit(&self, key: &String) -> bool;

    /// The same by the only user, who needs no lock around it.
    #[inline]
    fn admit_alone(&mut self, key: &String) -> bool {
        self.admit(key)
    }

    /// How many keys it has dropped, where it can tell: whoever drops keys is measured at that.
    fn dropped(&self) -> u64 {
        0
    }
}

impl<C: Clock> Limiter for LocalLimiter<C, DefaultHasher> {
    #[inline]
    fn admit(&self, key: &String) -> bool {
        self.take(key).is_allowed()
    }

    fn dropped(&self) -> u64 {
        self.occupancy().evicted
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
    fn admit_alone(&mut self, key: &String) -> bool {
        self.get_mut().is_ok_and(|limiter| admits(limiter, key))
    }
}

#[inline]
fn admits<S: Store>(limiter: &mut RateLimiter<S>, key: &str) -> bool {
    let answer = limiter.rate_limit(key, i64::from(BURST), 1, 60, 1, SystemTime::now());
    answer.is_ok_and(|(allowed, _)| allowed)
}

/// The quota as tollgate's.
///
/// # Errors
/// Never, with these numbers.
pub fn limit() -> Result<Limit, QuotaError> {
    Limit::token_bucket(Quota::new(1, PER_TOKEN).burst(u64::from(BURST)))
}

/// governor as it comes, with the quota.
///
/// # Errors
/// Never, with these numbers.
pub fn governor() -> Outcome<DefaultKeyedRateLimiter<String>> {
    let quota = governor::Quota::with_period(PER_TOKEN).ok_or("governor wants a period")?;
    Ok(DefaultKeyedRateLimiter::keyed(quota.allow_burst(BURST.try_into()?)))
}

/// throttlecrab with one of its stores.
pub fn throttlecrab<S: Store>(store: S) -> Mutex<RateLimiter<S>> {
    Mutex::new(RateLimiter::new(store))
}

/// throttlecrab's default store, in a map that holds exactly `slots` where that is 7/8 of a power of
/// two. It asks its map for 1.3 times what it is told.
#[must_use]
pub fn adaptive_of_slots(slots: u32) -> Mutex<RateLimiter<AdaptiveStore>> {
    let told = slots as usize * 10 / 13;
    throttlecrab(AdaptiveStore::builder().capacity(told).build())
}
