//! The embedded limiter: a memory store and the limits it applies to every key.

use std::fmt;
use std::hash::BuildHasher;
use std::time::Duration;

use thiserror::Error;

use crate::algorithm::Op;
use crate::clock::{Clock, SystemClock};
use crate::decision::Decision;
use crate::error::{QuotaError, QuotaErrorKind};
use crate::limit::Limit;
use crate::listing::{Listing, Page};
use crate::memory::{AtCap, DefaultHasher, MemoryStore, MemoryStoreBuilder, Occupancy};
use crate::naming::unique_names;
use crate::plan::{Key, MAX_TAKES, Mode, Plan, Take};
use crate::store::StoreError;

/// Limits keys in this process. Synchronous, exact, and cannot fail.
///
/// Share it by reference or in an `Arc`. The slots of a [concurrency limit](Limit::concurrency) have no
/// permit here and only return by themselves; a [`MemoryStore`] knows permits.
///
/// ```
/// use tollgate::{Limit, LocalLimiter, Quota};
///
/// // Ten a minute and a hundred an hour: both have room, or neither is debited.
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
pub struct LocalLimiter<C = SystemClock, H = DefaultHasher> {
    limits: Box<[Limit]>,
    store: MemoryStore<C, H>,
}

/// Without the keys, which may be secrets and many.
impl<C: fmt::Debug, H> fmt::Debug for LocalLimiter<C, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalLimiter")
            .field("limits", &self.limits)
            .field("store", &self.store)
            .finish()
    }
}

impl LocalLimiter {
    /// One limit for every key, a million keys at most.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self { limits: Box::new([limit]), store: MemoryStore::new() }
    }

    /// Several limits, another clock, other dimensions.
    pub fn builder() -> LocalLimiterBuilder {
        LocalLimiterBuilder { limits: Vec::new(), store: MemoryStore::builder() }
    }
}

impl<C: Clock, H: BuildHasher> LocalLimiter<C, H> {
    /// Takes one from every limit of `key`, or nothing.
    #[must_use]
    #[inline]
    pub fn take(&self, key: &str) -> Decision<'_> {
        self.take_n(key, 1)
    }

    /// Takes `n` from every limit of `key`, or nothing. Taking 0 only asks.
    #[must_use]
    #[inline]
    pub fn take_n(&self, key: &str, n: u64) -> Decision<'_> {
        if let [limit] = &*self.limits {
            let (reply, now) = self.store.apply(&Key::private(key, limit), Op::Take { cost: n });
            return Decision::of_one(now, limit, Mode::Enforce, reply);
        }
        self.store.take(&self.plan(key, n)).borrowing(&self.limits)
    }

    /// Takes one, with being refused as an error to return with `?`.
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
    /// The key has no room.
    pub fn try_acquire(&self, key: &str) -> Result<Decision<'_>, RateLimitExceeded> {
        let decision = self.take(key);
        if decision.is_allowed() {
            return Ok(decision);
        }
        Err(RateLimitExceeded { key: key.to_owned(), retry_after: decision.retry_after() })
    }

    /// Tells what [`take`](Self::take) would answer, and takes nothing.
    #[must_use]
    pub fn peek(&self, key: &str) -> Decision<'_> {
        self.peek_n(key, 1)
    }

    /// Tells what [`take_n`](Self::take_n) would answer, and takes nothing.
    #[must_use]
    pub fn peek_n(&self, key: &str, n: u64) -> Decision<'_> {
        self.store.peek(&self.plan(key, n)).borrowing(&self.limits)
    }

    /// Gives `n` back to every limit of `key`, never above full.
    pub fn refund(&self, key: &str, n: u64) -> Decision<'_> {
        self.store.refund(&self.plan(key, n)).borrowing(&self.limits)
    }

    /// Takes `n` without asking, as if it had happened `age` ago, down to empty at most.
    pub fn debit(&self, key: &str, n: u64, age: Duration) -> Decision<'_> {
        self.store.debit(&self.plan(key, n), age).borrowing(&self.limits)
    }

    /// Refuses `key` for so long, whatever room it has. A shorter pause does not end a longer one.
    /// A new key for which there is no place is not paused: [`Occupancy::untracked`] counts it.
    pub fn pause(&self, key: &str, length: Duration) {
        for limit in &self.limits {
            self.store.pause(&Key::private(key, limit), length);
        }
    }

    /// Forgets everything recorded for `key`.
    pub fn reset(&self, key: &str) {
        for limit in &self.limits {
            self.store.reset(&Key::private(key, limit));
        }
    }

    /// The figures of `key`, one status per limit.
    #[must_use]
    pub fn stats(&self, key: &str) -> Decision<'_> {
        self.peek_n(key, 0)
    }

    /// A page of the keys in use, one entry per limit.
    ///
    /// # Errors
    /// A cursor that no limiter gave.
    pub fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.store.list(listing)
    }

    /// The limits, in the order of every decision's statuses.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// How full the store is.
    pub fn occupancy(&self) -> Occupancy {
        self.store.occupancy()
    }

    /// Drops keys that equal "never seen": see [`MemoryStore::sweep`].
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
pub struct LocalLimiterBuilder<C = SystemClock, H = DefaultHasher> {
    limits: Vec<Limit>,
    store: MemoryStoreBuilder<C, H>,
}

impl<C, H> LocalLimiterBuilder<C, H> {
    /// One more limit that every key must have room in.
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limits.push(limit);
        self
    }

    /// The most keys to hold.
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self { store: self.store.max_keys(max_keys), ..self }
    }

    /// What happens to a new key when that many are in use.
    pub fn at_cap(self, at_cap: AtCap) -> Self {
        Self { store: self.store.at_cap(at_cap), ..self }
    }

    /// Where the time comes from.
    pub fn clock<D>(self, clock: D) -> LocalLimiterBuilder<D, H> {
        LocalLimiterBuilder { limits: self.limits, store: self.store.clock(clock) }
    }

    /// How keys are hashed.
    pub fn hasher<I>(self, hasher: I) -> LocalLimiterBuilder<C, I> {
        LocalLimiterBuilder { limits: self.limits, store: self.store.hasher(hasher) }
    }

    /// The limiter.
    ///
    /// # Errors
    /// No limit, more than 16, or two of the same name.
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

/// The key has no room now. See [`LocalLimiter::try_acquire`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("Rate limit exceeded for key '{key}'")]
pub struct RateLimitExceeded {
    /// The key.
    pub key: String,
    /// How long to wait; none when waiting will not help.
    pub retry_after: Option<Duration>,
}
