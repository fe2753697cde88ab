//! A rule: which requests it is for, whom it counts, and its limits.

use crate::distribution::{Distributed, Distribution, OnStoreLoss};
use crate::limit::Limit;
use crate::limit::identity::Algorithm;

use super::condition::Condition;
use super::fact_name::FactName;
use super::view::View;

/// One rule of a policy, or its default.
///
/// ```
/// use tollgate::policy::{OnMissingFact, OnStoreLoss, Policy, RuleMode};
///
/// let policy = Policy::builtin();
/// let rule = policy.default_rule();
/// assert_eq!((rule.name(), rule.index(), rule.cost()), ("default", 0, 1));
/// assert_eq!(rule.limits()[0].name(), "60s");
/// assert_eq!((rule.mode(), rule.missing()), (RuleMode::Enforce, OnMissingFact::Share));
/// assert_eq!(rule.on_store_loss(), OnStoreLoss::Local);
/// ```
#[derive(Debug)]
pub struct Rule {
    pub(super) name: Box<str>,
    pub(super) index: usize,
    pub(super) conditions: Vec<Condition>,
    pub(super) per: Vec<FactName>,
    pub(super) limits: Vec<Limit>,
    pub(super) next: Vec<Limit>,
    pub(super) settings: Settings,
    pub(super) cost: u64,
    pub(super) is_unlimited: bool,
    pub(super) continues: bool,
    /// What requests without a `per` fact take from, where `missing` is deny.
    pub(super) refusal: Option<Limit>,
}

/// What rules inherit from the defaults of their policy.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    pub(super) mode: RuleMode,
    pub(super) distribution: Distribution,
    pub(super) missing: OnMissingFact,
}

/// Whether a rule may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RuleMode {
    /// It refuses.
    #[default]
    Enforce,
    /// It is evaluated and counted but never refuses. It still decides: a request that it matches
    /// goes on to no other rule unless it continues.
    Shadow,
}

/// What a rule does with a request that lacks a fact it is keyed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnMissingFact {
    /// All such requests share one counter.
    #[default]
    Share,
    /// The rule is not for it.
    Skip,
    /// It is refused, and waiting will not help.
    Deny,
}

impl RuleMode {
    /// Its name in policies and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
        }
    }
}

impl OnMissingFact {
    /// Its name in policies and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Skip => "skip",
            Self::Deny => "deny",
        }
    }
}

/// Whether a rule is for a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome<'p> {
    Matches,
    /// This is the first condition that does not hold.
    Fails(&'p Condition),
    /// All conditions hold, but it is keyed by a fact the request lacks, and skips those.
    Lacks(&'p FactName),
}

impl Rule {
    /// The one place where a rule is held against a request.
    pub(super) fn outcome(&self, view: &View<'_, '_>) -> Outcome<'_> {
        if let Some(failing) = self.conditions.iter().find(|condition| !condition.holds(view)) {
            return Outcome::Fails(failing);
        }
        match self.lacking(view) {
            Some(fact) if self.missing() == OnMissingFact::Skip => Outcome::Lacks(fact),
            _ => Outcome::Matches,
        }
    }

    /// The first fact it is keyed by that the request lacks.
    pub(super) fn lacking(&self, view: &View<'_, '_>) -> Option<&FactName> {
        self.per.iter().find(|fact| view.get(fact).is_none())
    }

    /// Its limit of this name and algorithm, live or next.
    pub(super) fn limit(&self, name: &str, algorithm: Algorithm) -> Option<&Limit> {
        let all = self.limits.iter().chain(&self.next).chain(&self.refusal);
        all.into_iter().find(|limit| limit.name() == name && limit.algorithm() == algorithm)
    }

    /// Its name; `default` for the default.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its position in the policy; that of the default is behind the last.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }

    /// What it matches: all of these. None at all match every request.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// The facts that requests are counted by. None at all count everyone together.
    #[must_use]
    pub fn per(&self) -> &[FactName] {
        &self.per
    }

    /// Its limits; none if it is unlimited.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Limits on trial: counted beside the live ones, never refusing.
    #[must_use]
    pub fn next(&self) -> &[Limit] {
        &self.next
    }

    /// Whether a limit of this rule is on trial: one of [`next`](Self::next).
    #[must_use]
    pub fn is_on_trial(&self, limit: &str) -> bool {
        self.next.iter().any(|next| next.name() == limit)
    }

    /// Whether it may refuse.
    #[must_use]
    pub const fn mode(&self) -> RuleMode {
        self.settings.mode
    }

    /// What it does while the store cannot be asked.
    #[must_use]
    pub const fn on_store_loss(&self) -> OnStoreLoss {
        self.settings.distribution.on_store_loss
    }

    /// Whether it counts in the store that nodes share.
    #[must_use]
    pub const fn distributed(&self) -> Distributed {
        self.settings.distribution.distributed
    }

    /// Both of these.
    #[must_use]
    pub const fn distribution(&self) -> Distribution {
        self.settings.distribution
    }

    /// What it does with a request that lacks a fact it is keyed by.
    #[must_use]
    pub const fn missing(&self) -> OnMissingFact {
        self.settings.missing
    }

    /// What a request of cost 1 takes; of higher costs, so many times that.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether what it matches passes without limit.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.is_unlimited
    }

    /// Whether the next rule that matches is added to this one.
    #[must_use]
    pub const fn continues(&self) -> bool {
        self.continues
    }
}
