//! Inline limits: a key with its own limits.

use std::borrow::Cow;
use std::sync::Arc;

use crate::costs::{Costs, amount_of};
use crate::limit::{INLINE_RULE, Limit, unique_names};
use crate::plan::{Key, MAX_TAKES, Plan, Take};
use crate::quota::{QuotaError, QuotaErrorKind};
use crate::subject::Subject;

/// A key with its own limits, independent of the policy.
///
/// ```
/// use tollgate::{Query, Inline, Limit, Limiter, MemoryStore, Policy, Quota, Verb};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let limits = vec![Limit::token_bucket(Quota::per_minute(10))?];
/// let decision = limiter.check(Inline::new("", "user:1", limits, 2)?).await?;
/// assert_eq!((decision.rule(), decision.remaining()), ("inline", Some(8)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Inline {
    subject: Subject,
    limits: InlineLimits,
    costs: Costs,
}

/// The validated limits of an [`Inline`] query. A clone is cheap, so a caller whose requests often have the same limits
/// validates them once.
///
/// ```
/// use tollgate::{Inline, InlineLimits, Limit, Quota, Query};
///
/// let limits = InlineLimits::new(vec![Limit::token_bucket(Quota::per_minute(10))?])?;
/// let queries = ["user:1", "user:2"].map(|key| Query::from(Inline::with_limits("", key, limits.clone(), 1)));
/// # drop(queries);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone)]
pub struct InlineLimits(Arc<[Limit]>);

impl InlineLimits {
    /// Validates the limits of a request.
    ///
    /// # Errors
    /// No limit, more than 16 limits, or two limits with the same name.
    pub fn new(limits: Vec<Limit>) -> Result<Self, QuotaError> {
        if limits.is_empty() || limits.len() > MAX_TAKES {
            return Err(QuotaError::built(
                QuotaErrorKind::Limits,
                format!("a request needs 1 to {MAX_TAKES} limits, not {}", limits.len()),
            ));
        }
        let limits = limits.into_iter().map(|limit| limit.in_rule(INLINE_RULE));
        Ok(Self(unique_names(limits.collect::<Result<_, _>>()?)?.into()))
    }
}

impl Inline {
    /// Creates a query for a `cost` in requests from each limit of `key`. An empty tenant means none.
    ///
    /// # Errors
    /// As [`InlineLimits::new`].
    pub fn new(
        tenant: impl AsRef<[u8]>,
        key: impl AsRef<[u8]>,
        limits: Vec<Limit>,
        cost: u64,
    ) -> Result<Self, QuotaError> {
        Ok(Self::with_limits(tenant, key, InlineLimits::new(limits)?, cost))
    }

    /// Creates a query for a `cost` in requests from each of these limits of `key`. An empty tenant means none.
    #[must_use]
    pub fn with_limits(
        tenant: impl AsRef<[u8]>,
        key: impl AsRef<[u8]>,
        limits: InlineLimits,
        cost: u64,
    ) -> Self {
        let subject = Subject::in_tenant(tenant, [key.as_ref()]);
        Self { subject, limits, costs: Costs::requests(cost) }
    }

    /// Replaces the tenant and the key, and keeps limits and costs. An empty tenant means none. Reuses the memory of the
    /// previous key, for callers that decide one query after the other.
    ///
    /// ```
    /// use tollgate::{Inline, Limit, Limiter, MemoryStore, Policy, Quota};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let mut query = Inline::new("", "user:1", vec![Limit::token_bucket(Quota::per_minute(10))?], 10)?;
    /// assert!(limiter.check(query.clone()).await?.is_allowed());
    /// query.set_key("", "user:2");
    /// assert!(limiter.check(query).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_key(&mut self, tenant: impl AsRef<[u8]>, key: impl AsRef<[u8]>) {
        self.subject.set(tenant, [Some(key)]);
    }

    /// Splits the query into its subject and limits.
    pub(crate) fn into_counters(self) -> (Subject, Box<[Limit]>) {
        (self.subject, self.limits.0.iter().cloned().collect())
    }

    /// The same query with other costs.
    ///
    /// ```
    /// use tollgate::{Costs, Inline, Limit, Limiter, MemoryStore, Policy, Quota, Unit};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let tokens = Limit::token_bucket(Quota::per_minute(90_000))?.in_unit(Unit::new("tokens")?)?;
    /// let query = Inline::new("", "user:1", vec![tokens], 1)?;
    /// let decision = limiter.check(query.with_costs(Costs::of([("tokens", 1800)])?)).await?;
    /// assert_eq!(decision.remaining(), Some(88_200));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_costs(self, costs: Costs) -> Self {
        Self { costs, ..self }
    }

    /// The costs.
    pub(super) const fn costs(&self) -> &Costs {
        &self.costs
    }

    /// The tenant; empty for none.
    #[cfg(feature = "policy")]
    pub(super) fn tenant(&self) -> Box<[u8]> {
        Subject::parse(self.subject.as_str()).map_or_else(Box::default, |parts| parts.tenant.into())
    }

    /// The key, in readable form.
    pub(crate) fn key(&self) -> Cow<'_, str> {
        self.subject.key()
    }

    /// Returns true if a limit holds concurrency slots.
    pub(crate) fn holds_slots(&self) -> bool {
        self.limits.0.iter().any(|limit| limit.algorithm().holds_slots())
    }

    pub(crate) fn plan(&self) -> Plan<'_> {
        let take = |limit| {
            let cost = amount_of(limit, self.costs.requests_amount(), self.costs.others());
            Take::new(Key::new(&self.subject, limit), cost)
        };
        Plan::of_distinct(self.limits.0.iter().map(take))
    }
}
