//! A rule: the requests that it matches, the facts that it counts by, and its limits.

use crate::algorithm::Algorithm;
use crate::limit::{INLINE_RULE, Limit};
use crate::plan::{Distributed, Distribution, OnStoreLoss};

use super::condition::Condition;
use super::fact_name::FactName;
use super::normalized_facts::NormalizedFacts;

/// A rule of a policy, or its default rule.
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
    pub(super) exclusions: Vec<Condition>,
    pub(super) per: Vec<FactName>,
    pub(super) limits: Vec<Limit>,
    pub(super) next: Vec<Limit>,
    pub(super) settings: Settings,
    pub(super) cost: u64,
    pub(super) is_unlimited: bool,
    pub(super) continues: bool,
    /// The block that refuses requests without a `per` fact, if `missing` is `deny`.
    pub(super) missing_block: Option<Limit>,
}

/// Settings that rules inherit from the policy's `defaults`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    pub(super) mode: RuleMode,
    pub(super) distribution: Distribution,
    pub(super) missing: OnMissingFact,
}

/// Whether a rule can refuse requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RuleMode {
    /// The rule refuses requests that exceed its limits.
    #[default]
    Enforce,
    /// The rule is evaluated and counted but never refuses. It still ends the search: no later rule is tried
    /// unless it has `continue: true`.
    Shadow,
}

/// The behaviour of a rule if the request lacks a `per` fact (policy field `missing`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnMissingFact {
    /// All requests without the fact share one counter.
    #[default]
    Share,
    /// The rule does not match.
    Skip,
    /// The request is refused with the verdict `Never`.
    Deny,
}

impl RuleMode {
    /// Returns the value as written in policies and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
        }
    }
}

impl OnMissingFact {
    /// Returns the value as written in policies and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Skip => "skip",
            Self::Deny => "deny",
        }
    }
}

/// Whether a rule matches a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum MatchResult<'p> {
    Matched,
    /// The first condition that does not hold.
    Failed(&'p Condition),
    /// The first condition of `unless` that holds.
    Excluded(&'p Condition),
    /// All conditions hold, but the request lacks this `per` fact and the rule has `missing: skip`.
    MissingFact(&'p FactName),
}

impl Rule {
    /// Returns the rule that counts requests with their own limit if no rule of the policy matches them. It has the
    /// distribution of the default rule, and no place among the rules.
    pub(super) fn inline(default: &Self) -> Self {
        let distribution = default.distribution();
        Self {
            name: INLINE_RULE.into(),
            index: usize::MAX,
            conditions: Vec::new(),
            exclusions: Vec::new(),
            per: ["domain", "descriptor"].map(FactName::new).into(),
            limits: Vec::new(),
            next: Vec::new(),
            settings: Settings { distribution, ..Settings::default() },
            cost: 1,
            is_unlimited: false,
            continues: false,
            missing_block: None,
        }
    }

    /// Matches the rule against a request. This is the only place that does.
    pub(super) fn try_match(&self, facts: &NormalizedFacts<'_, '_>) -> MatchResult<'_> {
        if let Some(failed) = self.conditions.iter().find(|condition| !condition.holds(facts)) {
            return MatchResult::Failed(failed);
        }
        if let Some(held) = self.exclusions.iter().find(|condition| condition.holds(facts)) {
            return MatchResult::Excluded(held);
        }
        match self.missing_fact(facts) {
            Some(fact) if self.missing() == OnMissingFact::Skip => MatchResult::MissingFact(fact),
            _ => MatchResult::Matched,
        }
    }

    /// Returns whether the rule matches every request and ends the search.
    pub(super) fn is_certain(&self) -> bool {
        self.is_unconditional() && self.missing() != OnMissingFact::Skip && !self.continues
    }

    /// Returns the first `per` fact that the request lacks.
    pub(super) fn missing_fact(&self, facts: &NormalizedFacts<'_, '_>) -> Option<&FactName> {
        self.per.iter().find(|fact| facts.get(fact).is_none())
    }

    /// Returns the limit with this name and algorithm, live or trial.
    pub(super) fn limit(&self, name: &str, algorithm: Algorithm) -> Option<&Limit> {
        let all = self.limits.iter().chain(&self.next).chain(&self.missing_block);
        all.into_iter().find(|limit| limit.name() == name && limit.algorithm() == algorithm)
    }

    /// Returns the name of the rule; `default` for the default rule.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the position in the policy, from 0. The default rule comes after the last rule.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }

    /// Returns the conditions of `match`, all of which must hold.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Returns the conditions of `unless`, none of which may hold.
    ///
    /// ```
    /// use tollgate::{Facts, Policy, Request};
    ///
    /// let text = "
    /// version: 1
    /// rules: [{ name: api, match: { path: /api/** }, unless: { path: /api/health }, limits: [10/s] }]
    /// ";
    /// let policy = Policy::from_yaml("p.yaml", text, Policy::builtin_limit())?;
    /// assert_eq!(policy.rules()[0].exclusions()[0].name(), "path");
    /// let request = Request::new(Facts::of([("path", "/api/health")])?);
    /// assert_eq!(policy.plan(&request).rule().name(), "default");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn exclusions(&self) -> &[Condition] {
        &self.exclusions
    }

    /// Returns whether the rule has no conditions: it matches every request that has its `per` facts.
    #[must_use]
    pub fn is_unconditional(&self) -> bool {
        self.conditions.is_empty() && self.exclusions.is_empty()
    }

    /// Returns the facts that requests are counted by. If empty, all requests share one counter.
    #[must_use]
    pub fn per(&self) -> &[FactName] {
        &self.per
    }

    /// Returns the limits; empty if the rule is unlimited.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Returns the trial limits, which are counted in addition to the live limits and never refuse.
    #[must_use]
    pub fn next(&self) -> &[Limit] {
        &self.next
    }

    /// Returns whether the limit with this name is a trial limit (one of [`next`](Self::next)).
    #[must_use]
    pub fn is_on_trial(&self, limit: &str) -> bool {
        self.next.iter().any(|next| next.name() == limit)
    }

    /// Returns whether the rule can refuse requests.
    #[must_use]
    pub const fn mode(&self) -> RuleMode {
        self.settings.mode
    }

    /// Returns how the rule decides during an outage of the store.
    #[must_use]
    pub const fn on_store_loss(&self) -> OnStoreLoss {
        self.settings.distribution.on_store_loss
    }

    /// Returns whether the rule counts in the shared store.
    #[must_use]
    pub const fn distributed(&self) -> Distributed {
        self.settings.distribution.distributed
    }

    /// Returns [`distributed`](Self::distributed) and [`on_store_loss`](Self::on_store_loss).
    #[must_use]
    pub const fn distribution(&self) -> Distribution {
        self.settings.distribution
    }

    /// Returns the behaviour if a request lacks a `per` fact.
    #[must_use]
    pub const fn missing(&self) -> OnMissingFact {
        self.settings.missing
    }

    /// Returns the factor by which the cost of a request is multiplied.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns whether the rule allows every request that it matches.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.is_unlimited
    }

    /// Returns whether the search continues after this rule (`continue: true`).
    #[must_use]
    pub const fn continues(&self) -> bool {
        self.continues
    }
}
