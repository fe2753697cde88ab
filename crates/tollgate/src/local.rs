//! Embedded limiter: a memory store and the limits that apply to every key.

use std::fmt;
use std::hash::BuildHasher;
use std::time::Duration;

use thiserror::Error;

use crate::algorithm::Verdict;
use crate::decision::Decision;
use crate::limit::{Limit, unique_names};
use crate::memory::{AtCap, DefaultHasher, MemoryStore, MemoryStoreBuilder, Occupancy};
use crate::plan::{Key, MAX_TAKES, Mode, Plan, Take};
use crate::quota::{QuotaError, QuotaErrorKind};
use crate::store::{Listing, Page, StoreError};
use crate::time::{CalibratedClock, Clock};

/// In-process rate limiter with the same limits for every key. Synchronous, exact and infallible.
///
/// Share it by reference or in an `Arc`. Slots of a [concurrency limit](Limit::concurrency) have no permit here
/// and only expire; use a [`MemoryStore`] for permits.
///
/// ```
/// use tollgate::{Limit, LocalLimiter, Quota};
///
/// // 10 per minute and 100 per hour: a take debits both or neither.
/// let limiter = LocalLimiter::builder()
///     .limit(Limit::token_bucket(Quota::per_minute(10))?)
///     .limit(Limit::token_bucket(Quota::per_hour(100))?)
///     .build()?;
///
/// let decision = limiter.take("user:1");
/// assert!(decision.is_allowed());
/// assert_eq!(decision.remaining(), Some(9));
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
pub struct LocalLimiter<C = CalibratedClock, H = DefaultHasher> {
    limits: Box<[Limit]>,
    store: MemoryStore<C, H>,
}

/// Omits the keys, which may be secret and numerous.
impl<C: fmt::Debug, H> fmt::Debug for LocalLimiter<C, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalLimiter")
            .field("limits", &self.limits)
            .field("store", &self.store)
            .finish()
    }
}

impl LocalLimiter {
    /// Creates a limiter with one limit and at most 1 000 000 keys.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self { limits: Box::new([limit]), store: MemoryStore::new() }
    }

    /// Returns a builder, to set several limits, the clock or the capacity.
    pub fn builder() -> LocalLimiterBuilder {
        LocalLimiterBuilder { limits: Vec::new(), store: MemoryStore::builder() }
    }
}

impl<C: Clock, H: BuildHasher> LocalLimiter<C, H> {
    /// Takes 1 from every limit of `key`, or from none.
    #[must_use]
    #[inline]
    pub fn take(&self, key: &str) -> Decision<'_> {
        self.take_n(key, 1)
    }

    /// Takes `n` from every limit of `key`, or from none. A cost of 0 is a peek.
    #[must_use]
    #[inline]
    pub fn take_n(&self, key: &str, n: u64) -> Decision<'_> {
        if let [limit] = &*self.limits {
            let (outcome, now) = self.store.take_one(&Key::private(key, limit), n);
            return Decision::of_one(now, limit, Mode::Enforce, outcome);
        }
        self.take_several(key, n)
    }

    /// Takes 1 from every limit of `key`, or from none, and returns only the verdict.
    ///
    /// Faster than [`take`](Self::take) by the time to compute the figures of a decision.
    ///
    /// ```
    /// use tollgate::{Limit, LocalLimiter, Quota};
    ///
    /// let limiter = LocalLimiter::new(Limit::token_bucket(Quota::per_minute(1))?);
    /// assert!(limiter.check("user:1").is_allowed());
    /// assert!(limiter.check("user:1").retry_after().is_some());
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[inline]
    pub fn check(&self, key: &str) -> Verdict {
        self.check_n(key, 1)
    }

    /// Takes `n` from every limit of `key`, or from none, and returns only the verdict. A cost of 0 is a peek.
    #[inline]
    pub fn check_n(&self, key: &str, n: u64) -> Verdict {
        if let [limit] = &*self.limits {
            return self.store.check_one(&Key::private(key, limit), n);
        }
        self.check_several(key, n)
    }

    #[inline(never)]
    fn take_several(&self, key: &str, n: u64) -> Decision<'_> {
        let usual = self.store.take_buckets(key, self.limits.iter().map(|limit| (limit, n)));
        usual.unwrap_or_else(|| self.store.take(&self.plan(key, n)).with_limits(&self.limits))
    }

    #[inline(never)]
    fn check_several(&self, key: &str, n: u64) -> Verdict {
        let usual = self.store.check_buckets(key, self.limits.iter().map(|limit| (limit, n)));
        usual.unwrap_or_else(|| self.store.take(&self.plan(key, n)).verdict())
    }

    /// Takes 1, and returns a refusal as an error for use with `?`.
    ///
    /// ```
    /// use tollgate::{Limit, LocalLimiter, Quota, RateLimitExceeded};
    ///
    /// fn call(limiter: &LocalLimiter) -> Result<(), RateLimitExceeded> {
    ///     limiter.try_acquire("igdb:api")?;
    ///     Ok(())
    /// }
    ///
    /// let limiter = LocalLimiter::new(Limit::sliding_window(Quota::per_second(1))?);
    /// assert!(call(&limiter).is_ok());
    /// let refused = call(&limiter).unwrap_err();
    /// assert_eq!(refused.to_string(), "Rate limit exceeded for key 'igdb:api'");
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// The limit is exceeded.
    pub fn try_acquire(&self, key: &str) -> Result<Decision<'_>, RateLimitExceeded> {
        let decision = self.take(key);
        if decision.is_allowed() {
            return Ok(decision);
        }
        Err(RateLimitExceeded { key: key.to_owned(), retry_after: decision.retry_after() })
    }

    /// Returns the decision of [`take`](Self::take) without taking anything.
    #[must_use]
    pub fn peek(&self, key: &str) -> Decision<'_> {
        self.peek_n(key, 1)
    }

    /// Returns the decision of [`take_n`](Self::take_n) without taking anything.
    #[must_use]
    pub fn peek_n(&self, key: &str, n: u64) -> Decision<'_> {
        self.store.peek(&self.plan(key, n)).with_limits(&self.limits)
    }

    /// Refunds `n` to every limit of `key`, never above full.
    pub fn refund(&self, key: &str, n: u64) -> Decision<'_> {
        self.store.refund(&self.plan(key, n)).with_limits(&self.limits)
    }

    /// Debits `n` unconditionally, as if `age` ago; never below empty.
    pub fn debit(&self, key: &str, n: u64, age: Duration) -> Decision<'_> {
        self.store.debit(&self.plan(key, n), age).with_limits(&self.limits)
    }

    /// Refuses every take from `key` for `length`. A shorter pause does not shorten a longer one. At
    /// `max_keys` a new key is not paused; [`Occupancy::untracked`] counts it.
    pub fn pause(&self, key: &str, length: Duration) {
        for limit in &self.limits {
            self.store.pause(&Key::private(key, limit), length);
        }
    }

    /// Deletes the state of `key`.
    pub fn reset(&self, key: &str) {
        for limit in &self.limits {
            self.store.reset(&Key::private(key, limit));
        }
    }

    /// Returns the figures of `key`, one status per limit.
    #[must_use]
    pub fn stats(&self, key: &str) -> Decision<'_> {
        self.peek_n(key, 0)
    }

    /// Returns a page of active keys, one entry per limit.
    ///
    /// # Errors
    /// The cursor is invalid.
    pub fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.store.list(listing)
    }

    /// Limits of every key, in the order of a decision's statuses.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Number of stored keys and capacity of the store.
    pub fn occupancy(&self) -> Occupancy {
        self.store.occupancy()
    }

    /// Drops fresh keys; see [`MemoryStore::sweep`].
    pub fn sweep(&self, keys: usize) -> usize {
        self.store.sweep(keys)
    }

    fn plan<'a>(&'a self, key: &'a str, cost: u64) -> Plan<'a> {
        Plan::of_distinct(self.limits.iter().map(|limit| Take::new(Key::private(key, limit), cost)))
    }
}

/// Builds a [`LocalLimiter`].
///
/// ```
/// use tollgate::{Limit, LocalLimiter, ManualClock, Quota};
///
/// let limiter = LocalLimiter::builder()
///     .limit(Limit::sliding_window(Quota::per_second(4))?)
///     .max_keys(10_000)
///     .clock(ManualClock::new())
///     .build()?;
/// assert_eq!(limiter.limits().len(), 1);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct LocalLimiterBuilder<C = CalibratedClock, H = DefaultHasher> {
    limits: Vec<Limit>,
    store: MemoryStoreBuilder<C, H>,
}

impl<C, H> LocalLimiterBuilder<C, H> {
    /// Adds a limit for every key.
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limits.push(limit);
        self
    }

    /// Sets the maximum number of keys.
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self { store: self.store.max_keys(max_keys), ..self }
    }

    /// Sets the behaviour for a new key when the limiter is full.
    pub fn at_cap(self, at_cap: AtCap) -> Self {
        Self { store: self.store.at_cap(at_cap), ..self }
    }

    /// Sets the clock.
    pub fn clock<D>(self, clock: D) -> LocalLimiterBuilder<D, H> {
        LocalLimiterBuilder { limits: self.limits, store: self.store.clock(clock) }
    }

    /// Sets the hasher of keys.
    pub fn hasher<I>(self, hasher: I) -> LocalLimiterBuilder<C, I> {
        LocalLimiterBuilder { limits: self.limits, store: self.store.hasher(hasher) }
    }

    /// Builds the limiter.
    ///
    /// # Errors
    /// There are no limits, more than 16, or two with the same name.
    pub fn build(self) -> Result<LocalLimiter<C, H>, QuotaError> {
        let Self { limits, store } = self;
        if limits.is_empty() || limits.len() > MAX_TAKES {
            return Err(QuotaError::built(
                QuotaErrorKind::Limits,
                format!("a limiter needs 1 to {MAX_TAKES} limits, not {}", limits.len()),
            ));
        }
        Ok(LocalLimiter { limits: unique_names(limits)?.into(), store: store.build() })
    }
}

/// Refusal of [`LocalLimiter::try_acquire`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("Rate limit exceeded for key '{key}'")]
pub struct RateLimitExceeded {
    /// Refused key.
    pub key: String,
    /// Time until the same take passes; `None` if waiting does not help.
    pub retry_after: Option<Duration>,
}
