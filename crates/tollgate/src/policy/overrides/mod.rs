//! Overrides: stored exceptions for one client. They are data, not configuration, and survive policy changes.

mod active;
mod collection;
mod effect;
mod error;
mod json;
mod other_limits;
mod override_limit;
mod storage;

pub(crate) use active::ActiveOverrides;
pub use collection::Overrides;
pub use effect::OverrideEffect;
pub use error::{OverrideCandidate, OverrideError, OverrideErrorKind};
pub use other_limits::OtherLimits;
pub use override_limit::OverrideLimit;
pub use storage::OverrideStorage;

use std::sync::Arc;

use super::CLIENT;
use super::rule::Rule;
use crate::algorithm::Algorithm;
use crate::limit::Limit;
use crate::policy::parse::{TRIAL_NAME, TRIAL_PREFIX};
use crate::time::Timestamp;

/// The maximum number of limits in an override. Together with the limits of other rules they must fit into one
/// plan.
const MAX_LIMITS: usize = 8;

/// Limits for one client that replace limits of one rule, with author, reason and expiry.
///
/// Each entry replaces the rule's limit with the same window or name and takes over its counter, so usage is kept. An
/// entry without such a limit is an additional token bucket. The rule's other limits stay, or are removed with
/// [`only`](Self::only). An override that names the rule of a block (a limit of 0) replaces the block.
///
/// A client can have one override per rule. An override without a rule, as earlier versions stored it, applies to every
/// rule that counts per client, except to blocks and to rules that have an override of their own.
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
/// let raised = raised.for_rule("default");
/// let overrides = Overrides::default().with(&Subject::of(["c1"]), raised);
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
    /// The rule that it applies to; `None` applies to every rule that counts per client and is not a block.
    pub rule: Option<String>,
    /// Whether the rule's other limits stay.
    pub other_limits: OtherLimits,
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
    /// Creates an override for every rule that counts per client and is not a block, without expiry.
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
            let reason = "has the same window, unit and name as an earlier limit";
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
            other_limits: OtherLimits::Keep,
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

    /// Removes the rule's other limits for this client.
    #[must_use]
    pub fn only(self) -> Self {
        Self { other_limits: OtherLimits::Remove, ..self }
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

    /// Returns whether the override can apply to `rule`: it names the rule, or has no rule and the rule is not a block.
    fn is_for(&self, rule: &Rule) -> bool {
        let is_selected = match self.rule.as_deref() {
            Some(name) => name == rule.name(),
            None => !rule.blocks(),
        };
        rule.is_per_client() && is_selected
    }

    /// Returns whether the entries can change `rule`: slots can change only rules with a concurrency limit.
    pub(crate) fn can_change(&self, rule: &Rule) -> bool {
        let has_slots = rule.limits().iter().any(|limit| limit.algorithm().holds_slots());
        self.limits.iter().any(|entry| has_slots || !entry.is_slots())
    }

    /// Returns the limits of `rule` for this client: those of the rule if the override does not change it.
    pub(crate) fn limits_in(&self, rule: &Rule) -> Result<Vec<Limit>, OverrideError> {
        Ok(self.limits_for(rule)?.unwrap_or_else(|| rule.limits().to_vec()))
    }

    /// Returns the limits of `rule` for this client; `None` if the override does not change the rule.
    fn limits_for(&self, rule: &Rule) -> Result<Option<Vec<Limit>>, OverrideError> {
        let mut limits = Vec::with_capacity(self.limits.len());
        for (index, entry) in self.limits.iter().enumerate() {
            let built = entry.build(rule, &limits).map_err(|error| {
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
        if self.other_limits == OtherLimits::Keep {
            let replaced = limits.len();
            for limit in rule.limits() {
                let is_replaced =
                    limits.iter().take(replaced).any(|new| new.name() == limit.name());
                // A block that stays would make the override pointless.
                if !is_replaced && limit.algorithm() != Algorithm::Block {
                    limits.push(limit.clone());
                }
            }
        }
        Ok(Some(limits))
    }
}

/// Returns the override of a client that applies to `rule`: that of the rule, else the one without a rule.
fn applying<'o>(overrides: &'o [Arc<Override>], rule: &Rule) -> Option<&'o Arc<Override>> {
    let mut candidates = overrides.iter().filter(|candidate| candidate.is_for(rule));
    let first = candidates.next()?;
    if first.rule.is_some() { Some(first) } else { Some(candidates.next().unwrap_or(first)) }
}

impl Rule {
    /// Returns whether the rule counts per client (`client` is one of its `per` facts), so that an [`Override`]
    /// can change it. Unlimited rules do not count.
    #[must_use]
    pub fn is_per_client(&self) -> bool {
        !self.is_unlimited && self.per.iter().any(|fact| fact.as_str() == CLIENT)
    }
    /// Returns whether the rule is a block: one of its limits is 0, so it refuses every request.
    #[must_use]
    pub fn blocks(&self) -> bool {
        self.limits.iter().any(|limit| limit.algorithm() == Algorithm::Block)
    }
}
