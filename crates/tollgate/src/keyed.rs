//! The keyed limiter: limits for string keys over any store, without a policy.

use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use crate::algorithm::PermitId;
use crate::decision::{OwnedDecision, Permit};
use crate::limit::{Limit, unique_names};
use crate::plan::{Distribution, Key, MAX_TAKES, OnStoreLoss, Plan, Take, Verb};
use crate::quota::{QuotaError, QuotaErrorKind};
use crate::store::{Store, StoreError};
use crate::subject::Subject;
use crate::time::{MAX_EXACT, Timestamp};

/// Limits string keys over any store: one limit for every key, or several that are taken all or nothing.
///
/// Counters are found by the limit's rule and name. Keyed limiters that share a store and must not share
/// counters need different names: `limit.named("login")?`. Limits of the rule `default` are shared with the
/// policy's default limit of the same name.
///
/// ```
/// use tollgate::{KeyedLimiter, Limit, MemoryStore, Quota};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limit = Limit::token_bucket(Quota::per_minute(10))?.named("login")?;
/// let limiter = KeyedLimiter::new(MemoryStore::new(), limit);
///
/// let decision = limiter.check("user:1").await?;
/// assert!(decision.is_allowed());
/// let decision = limiter.check("user:1").cost(10).await?;
/// assert_eq!(decision.retry_after().map(|wait| wait.as_secs()), Some(5));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct KeyedLimiter<S> {
    store: S,
    limits: Box<[Limit]>,
    distribution: Distribution,
}

impl<S: Store> KeyedLimiter<S> {
    /// Creates a limiter with one limit for every key.
    pub fn new(store: S, limit: Limit) -> Self {
        Self { store, limits: Box::new([limit]), distribution: Distribution::default() }
    }

    /// Creates a limiter with several limits for every key: all have room, or none is charged.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Limit, MemoryStore, Quota};
    ///
    /// let limits = vec![
    ///     Limit::token_bucket(Quota::per_minute(10))?,
    ///     Limit::token_bucket(Quota::per_hour(100))?,
    /// ];
    /// let limiter = KeyedLimiter::with_limits(MemoryStore::new(), limits)?;
    /// assert_eq!(limiter.limits().len(), 2);
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// No limit, more than 16 limits, or two limits with the same name.
    pub fn with_limits(store: S, limits: Vec<Limit>) -> Result<Self, QuotaError> {
        if limits.is_empty() || limits.len() > MAX_TAKES {
            return Err(QuotaError::built(
                QuotaErrorKind::Limits,
                format!("a keyed limiter needs 1 to {MAX_TAKES} limits, not {}", limits.len()),
            ));
        }
        let limits = unique_names(limits)?.into_boxed_slice();
        Ok(Self { store, limits, distribution: Distribution::default() })
    }

    /// Sets what happens while a [`FallbackStore`](crate::FallbackStore) has lost its shared store. The
    /// default is [`OnStoreLoss::Local`]. Other stores return an error instead.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Limit, MemoryStore, OnStoreLoss, Quota};
    ///
    /// let limit = Limit::token_bucket(Quota::per_minute(10))?;
    /// let limiter = KeyedLimiter::new(MemoryStore::new(), limit).on_store_loss(OnStoreLoss::Deny);
    /// # drop(limiter);
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[must_use]
    pub fn on_store_loss(mut self, on_store_loss: OnStoreLoss) -> Self {
        self.distribution.on_store_loss = on_store_loss;
        self
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// The limits, in the order of every decision's statuses.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Takes one from every limit of `key`, or nothing. Add [`cost`](KeyedCall::cost) for another amount,
    /// then `.await`.
    pub fn check<'a>(&'a self, key: impl Into<Cow<'a, str>>) -> KeyedCall<'a, S> {
        self.call(Verb::Take, key.into())
    }

    /// Returns what [`check`](Self::check) would return and consumes nothing.
    pub fn peek<'a>(&'a self, key: impl Into<Cow<'a, str>>) -> KeyedCall<'a, S> {
        self.call(Verb::Peek, key.into())
    }

    /// Returns one to every limit of `key`, never above full. Slots are returned by
    /// [`release`](Self::release) instead.
    ///
    /// ```
    /// # use tollgate::{KeyedLimiter, Limit, MemoryStore, Quota};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limit = Limit::sliding_window(Quota::per_minute(10))?;
    /// let limiter = KeyedLimiter::new(MemoryStore::new(), limit);
    /// assert_eq!(limiter.check("user:1").cost(3).await?.remaining(), Some(7));
    /// assert_eq!(limiter.refund("user:1").cost(2).await?.remaining(), Some(9));
    /// # Ok(())
    /// # }
    /// ```
    pub fn refund<'a>(&'a self, key: impl Into<Cow<'a, str>>) -> KeyedCall<'a, S> {
        self.call(Verb::Refund, key.into())
    }

    /// Resets the usage of `key` in every limit.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn reset(&self, key: &str) -> Result<(), StoreError> {
        let subject = Subject::of([key]);
        for limit in &self.limits {
            self.store.reset(&Key::new(&subject, limit)).await?;
        }
        Ok(())
    }

    /// Releases the slots of a permit before they expire. Returns whether any slot was still held.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        self.store.release(permit).await
    }

    /// Extends a permit by its time to live. Returns the new expiry, or `None` if a slot was already lost.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        self.store.renew(permit).await
    }

    const fn call<'a>(&'a self, verb: Verb, key: Cow<'a, str>) -> KeyedCall<'a, S> {
        KeyedCall { limiter: self, verb, key, cost: 1 }
    }
}

/// A call of a [`KeyedLimiter`]: set the cost, then `.await` it.
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is awaited"]
pub struct KeyedCall<'a, S> {
    limiter: &'a KeyedLimiter<S>,
    verb: Verb,
    key: Cow<'a, str>,
    cost: u64,
}

impl<S: Store> KeyedCall<'_, S> {
    /// Sets the cost. The default is 1; 0 only peeks. A cost above the limit's capacity never passes.
    pub fn cost(self, cost: u64) -> Self {
        Self { cost: cost.min(MAX_EXACT), ..self }
    }

    async fn run(self) -> Result<OwnedDecision, StoreError> {
        let Self { limiter, verb, key, cost } = self;
        let subject = Subject::of([key.as_ref()]);
        let take = |limit| {
            Take::new(Key::new(&subject, limit), cost).with_distribution(limiter.distribution)
        };
        let mut plan = Plan::of_distinct(limiter.limits.iter().map(take));
        let decision = match verb {
            Verb::Peek => limiter.store.peek(&plan).await?,
            Verb::Refund => limiter.store.refund(&plan).await?,
            _ => {
                if plan.holds_slots() {
                    plan = plan.with_permit(PermitId::random());
                }
                limiter.store.take(&plan).await?
            }
        };
        let rule = limiter.limits.first().map_or("", Limit::rule);
        Ok(OwnedDecision::new(&plan, &decision, rule, key))
    }
}

impl<'a, S: Store> IntoFuture for KeyedCall<'a, S> {
    type Output = Result<OwnedDecision, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
