//! Overrides: stored exceptions for one client. They are data, not configuration, and outlive policies.

mod active;
mod all;
mod effect;
mod error;
mod override_limit;
mod text;

pub(crate) use active::ActiveOverrides;
pub use all::Overrides;
pub use effect::OverrideEffect;
pub use error::{OverrideError, OverrideErrorKind};
pub use override_limit::OverrideLimit;

use super::CLIENT;
use super::rule::Rule;
use crate::limit::Limit;
use crate::limit::identity::Algorithm;
use crate::policy::read::TRIAL;
use crate::time::Timestamp;

/// The most limits of one override: with those of other rules they must fit into one plan.
const MAX_LIMITS: usize = 8;

/// A client's own limits, in place of those of the rules that count it; with who said so, why and until when.
///
/// An override replaces the limits of every rule keyed per client, or of the one it names. What was used stays
/// used: each limit takes over the counter of the one with the same window. Rates replace rates and slots slots; where it
/// speaks only of the one, the other stays.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Query, Facts, Limiter, MemoryStore, Override, Overrides, OverrideLimit, Policy};
/// use tollgate::{Request, Subject, Verb};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let asked = Query::ByPolicy(Request::new(Facts::of([("client", "c1")])?));
/// let left = limiter.decide(Verb::Take, &asked, |outcome| outcome.decision.remaining());
/// assert_eq!(left.await?, Some(99));
///
/// let raised = Override::new(vec![OverrideLimit::new(200, Duration::from_secs(60))])?;
/// let overrides = Overrides::default().with(&Subject::of(["c1"]), Some(raised));
/// limiter.set_overrides(&overrides);
/// let left = limiter.decide(Verb::Take, &asked, |outcome| outcome.decision.remaining());
/// assert_eq!(left.await?, Some(198));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Override {
    limits: Vec<OverrideLimit>,
    /// The one rule it is for; every rule keyed per client without one.
    pub rule: Option<String>,
    /// Why.
    pub reason: String,
    /// Who said so.
    pub author: String,
    /// Since when.
    pub set_at: Timestamp,
    /// When it ends by itself; none if it does not.
    pub expires_at: Option<Timestamp>,
}

impl Override {
    /// These limits, for every rule keyed per client, for good.
    ///
    /// # Errors
    /// No limit, more than 8, two that would share a counter, or one with the name of a trial limit.
    pub fn new(limits: Vec<OverrideLimit>) -> Result<Self, OverrideError> {
        if limits.is_empty() || limits.len() > MAX_LIMITS {
            let reason = format!("1 to {MAX_LIMITS} limits are wanted, not {}", limits.len());
            return Err(OverrideError::new(OverrideErrorKind::Limits, reason));
        }
        let is_twin = |(place, limit): (usize, &OverrideLimit)| {
            limits.iter().take(place).any(|other| other.shares_with(limit))
        };
        if let Some(place) = limits.iter().enumerate().position(is_twin) {
            let reason = "has the window and name of another before it";
            return Err(OverrideError::new(OverrideErrorKind::Limit { place }, reason));
        }
        let is_on_trial = |limit: &OverrideLimit| {
            limit.name.as_deref().is_some_and(|name| name.starts_with(TRIAL))
        };
        if let Some(place) = limits.iter().position(is_on_trial) {
            let reason = "names that begin with next. are those of trial limits";
            return Err(OverrideError::new(OverrideErrorKind::Limit { place }, reason));
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

    /// The same for one rule only.
    #[must_use]
    pub fn for_rule(self, rule: impl Into<String>) -> Self {
        Self { rule: Some(rule.into()), ..self }
    }

    /// The same, said by someone for a reason.
    #[must_use]
    pub fn recorded_by(self, author: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { author: author.into(), reason: reason.into(), ..self }
    }

    /// The same from one moment on, and until another if there is one.
    #[must_use]
    pub fn valid(self, from: Timestamp, until: Option<Timestamp>) -> Self {
        Self { set_at: from, expires_at: until, ..self }
    }

    /// Its limits, as they were given.
    #[must_use]
    pub fn limits(&self) -> &[OverrideLimit] {
        &self.limits
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    fn is_for(&self, rule: &Rule) -> bool {
        rule.is_per_client() && self.rule.as_deref().is_none_or(|name| name == rule.name())
    }

    /// What it puts in place of the rule's limits; none if it leaves them.
    fn limits_for(&self, rule: &Rule) -> Result<Option<Vec<Limit>>, OverrideError> {
        let mut limits = Vec::with_capacity(self.limits.len());
        for (place, own) in self.limits.iter().enumerate() {
            let built = own.build(rule).map_err(|error| {
                let reason = format!("{error} (as rule {} counts)", rule.name());
                OverrideError::new(OverrideErrorKind::Limit { place }, reason)
            })?;
            let Some(limit) = built else { continue };
            if limits.iter().any(|other: &Limit| other.name() == limit.name()) {
                let name = limit.name();
                let reason = format!("two limits would be called {name:?} in rule {}", rule.name());
                return Err(OverrideError::new(OverrideErrorKind::Limit { place }, reason));
            }
            limits.push(limit);
        }
        if limits.is_empty() {
            return Ok(None);
        }
        // Slots are another matter than rates: of what it does not speak it leaves.
        let (slots, rates) = (self.limits.iter().any(OverrideLimit::is_slots), self.has_rates());
        let is_left = |limit: &&Limit| match limit.algorithm() {
            Algorithm::Concurrency => !slots,
            _ => !rates,
        };
        limits.extend(rule.limits().iter().filter(is_left).cloned());
        Ok(Some(limits))
    }

    fn has_rates(&self) -> bool {
        self.limits.iter().any(|limit| !limit.is_slots())
    }
}

impl Rule {
    /// Whether it counts clients, each by itself or by more than that, so that an [`Override`] may change it.
    #[must_use]
    pub fn is_per_client(&self) -> bool {
        !self.is_unlimited && self.per.iter().any(|fact| fact.as_str() == CLIENT)
    }
}
