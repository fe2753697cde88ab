//! Overrides: stored exceptions for one client. They are data, not configuration, and survive policy changes.

mod active;
mod collection;
mod effect;
mod error;
mod json;
mod override_limit;
mod storage;

pub(crate) use active::ActiveOverrides;
pub use collection::Overrides;
pub use effect::OverrideEffect;
pub use error::{OverrideError, OverrideErrorKind};
pub use override_limit::OverrideLimit;
pub use storage::OverrideStorage;

use super::CLIENT;
use super::rule::Rule;
use crate::limit::Limit;
use crate::policy::parse::{TRIAL_NAME, TRIAL_PREFIX};
use crate::time::Timestamp;

/// The maximum number of limits in an override. Together with the limits of other rules they must fit into one
/// plan.
const MAX_LIMITS: usize = 8;

/// Limits for one client that replace those of the policy, with author, reason and expiry.
///
/// An override replaces the limits of every rule that counts per client, or only of the rule that it names.
/// Usage is kept: each limit takes over the counter of the rule's limit with the same window or name. Rates
/// replace all rates of the rule, slots replace its concurrency limits; if the override has only one of the two
/// kinds, the rule's limits of the other kind stay.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Query, Facts, Limiter, MemoryStore, Override, Overrides, OverrideLimit, Policy};
/// use tollgate::{Request, Subject, Verb};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let query = Query::ByPolicy(Request::new(Facts::of([("client", "c1")])?));
/// let remaining = limiter.decide(Verb::Take, &query, |outcome| outcome.decision.remaining());
/// assert_eq!(remaining.await?, Some(99));
///
/// let raised = Override::new(vec![OverrideLimit::new(200, Duration::from_secs(60))])?;
/// let overrides = Overrides::default().with(&Subject::of(["c1"]), Some(raised));
/// limiter.set_overrides(&overrides);
/// let remaining = limiter.decide(Verb::Take, &query, |outcome| outcome.decision.remaining());
/// assert_eq!(remaining.await?, Some(198));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Override {
    limits: Vec<OverrideLimit>,
    /// The rule that it applies to; `None` applies to every rule that counts per client.
    pub rule: Option<String>,
    /// The reason for the override.
    pub reason: String,
    /// The person or program that set it.
    pub author: String,
    /// The time when it was set.
    pub set_at: Timestamp,
    /// The time when it expires; `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
}

impl Override {
    /// Creates an override for every rule that counts per client, without expiry.
    ///
    /// # Errors
    /// No limit, more than 8 limits, two limits that would share a counter, or a limit named like a trial limit.
    pub fn new(limits: Vec<OverrideLimit>) -> Result<Self, OverrideError> {
        if limits.is_empty() || limits.len() > MAX_LIMITS {
            let reason =
                format!("an override must have 1 to {MAX_LIMITS} limits, not {}", limits.len());
            return Err(OverrideError::new(OverrideErrorKind::Limits, reason));
        }
        let is_duplicate = |(index, limit): (usize, &OverrideLimit)| {
            limits.iter().take(index).any(|earlier| earlier.shares_counter_with(limit))
        };
        if let Some(index) = limits.iter().enumerate().position(is_duplicate) {
            let reason = "has the same window and name as an earlier limit";
            return Err(OverrideError::new(OverrideErrorKind::Limit { index }, reason));
        }
        let has_trial_name = |limit: &OverrideLimit| {
            limit.name.as_deref().is_some_and(|name| name.starts_with(TRIAL_PREFIX))
        };
        if let Some(index) = limits.iter().position(has_trial_name) {
            return Err(OverrideError::new(OverrideErrorKind::Limit { index }, TRIAL_NAME));
        }
        Ok(Self {
            limits,
            rule: None,
            reason: String::new(),
            author: String::new(),
            set_at: Timestamp::EPOCH,
            expires_at: None,
        })
    }

    /// Restricts the override to one rule.
    #[must_use]
    pub fn for_rule(self, rule: impl Into<String>) -> Self {
        Self { rule: Some(rule.into()), ..self }
    }

    /// Sets the author and the reason.
    #[must_use]
    pub fn recorded_by(self, author: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { author: author.into(), reason: reason.into(), ..self }
    }

    /// Sets the time when the override was set, and its expiry.
    #[must_use]
    pub fn valid(self, set_at: Timestamp, expires_at: Option<Timestamp>) -> Self {
        Self { set_at, expires_at, ..self }
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> &[OverrideLimit] {
        &self.limits
    }

    /// Returns whether the override is expired at `now`.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expiry| expiry <= now)
    }

    fn is_for(&self, rule: &Rule) -> bool {
        rule.is_per_client() && self.rule.as_deref().is_none_or(|name| name == rule.name())
    }

    /// Returns the limits that replace those of `rule`; `None` if the override does not change the rule.
    fn limits_for(&self, rule: &Rule) -> Result<Option<Vec<Limit>>, OverrideError> {
        let mut limits = Vec::with_capacity(self.limits.len());
        for (index, entry) in self.limits.iter().enumerate() {
            let built = entry.build(rule).map_err(|error| {
                let reason = format!("{error} (in rule {:?})", rule.name());
                OverrideError::new(OverrideErrorKind::Limit { index }, reason)
            })?;
            let Some(limit) = built else { continue };
            if limits.iter().any(|earlier: &Limit| earlier.name() == limit.name()) {
                let (name, rule) = (limit.name(), rule.name());
                let reason = format!("replaces limit {name:?} of rule {rule:?} a second time");
                return Err(OverrideError::new(OverrideErrorKind::Limit { index }, reason));
            }
            limits.push(limit);
        }
        if limits.is_empty() {
            return Ok(None);
        }
        // Rates and slots are independent: the rule keeps its limits of the kind that the override does not set.
        let (has_slots, has_rates) =
            (self.limits.iter().any(OverrideLimit::is_slots), self.has_rates());
        let is_kept = |limit: &&Limit| {
            if limit.algorithm().holds_slots() { !has_slots } else { !has_rates }
        };
        limits.extend(rule.limits().iter().filter(is_kept).cloned());
        Ok(Some(limits))
    }

    fn has_rates(&self) -> bool {
        self.limits.iter().any(|limit| !limit.is_slots())
    }
}

impl Rule {
    /// Returns whether the rule counts per client (`client` is one of its `per` facts), so that an [`Override`]
    /// can change it. Unlimited rules do not count.
    #[must_use]
    pub fn is_per_client(&self) -> bool {
        !self.is_unlimited && self.per.iter().any(|fact| fact.as_str() == CLIENT)
    }
}
