//! The result of matching a request against a policy: the rules that apply, their subjects, and the plan.

use std::borrow::Cow;
use std::slice;
use std::sync::Arc;

use crate::algorithm::LimitField;
use crate::costs::{OtherCosts, amount_of};
use crate::limit::Limit;
use crate::plan::{Key, MAX_TAKES, Plan, PlanError, Take};
use crate::request::RequestView;
use crate::subject::Subject;
use crate::time::MAX_EXACT;

use super::normalized_facts::NormalizedFacts;
use super::overrides::ActiveOverrides;
use super::recycled_subject::RecycledSubject;
use super::rule::{OnMissingFact, Rule, RuleMode};

/// The rules that apply to a request, with the subject of each.
///
/// ```
/// use tollgate::policy::Policy;
/// use tollgate::{Facts, MemoryStore, Request};
///
/// let (policy, store) = (Policy::builtin(), MemoryStore::new());
/// let planned = policy.plan(&Request::new(Facts::of([("client", "c1")])?));
/// let plan = planned.plan()?;
/// let decision = store.take(&plan);
/// assert_eq!(decision.remaining(), Some(99));
/// assert_eq!(planned.matched()[0].key(), "c1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PolicyPlan<'p> {
    matched: MatchedRules<'p>,
    default: &'p Rule,
}

/// The rules that apply. Almost always there is one, which is stored without an allocation. A `SmallVec` is
/// invariant in its item type, so callers could not keep a [`Plan`] together with the `PolicyPlan` it borrows.
#[derive(Debug)]
enum MatchedRules<'p> {
    One([MatchedRule<'p>; 1]),
    Many(Vec<MatchedRule<'p>>),
}

impl<'p> PolicyPlan<'p> {
    /// Creates the plan of a request that one rule applies to.
    #[inline(always)]
    pub(super) fn of_one(matched: MatchedRule<'p>, default: &'p Rule) -> Self {
        Self { matched: MatchedRules::One([matched]), default }
    }

    pub(super) fn new(
        mut matched: impl Iterator<Item = MatchedRule<'p>>,
        default: &'p Rule,
    ) -> Self {
        let matched = match (matched.next(), matched.next()) {
            (Some(rule), None) => MatchedRules::One([rule]),
            (first, second) => {
                MatchedRules::Many(first.into_iter().chain(second).chain(matched).collect())
            }
        };
        Self { matched, default }
    }

    /// Returns the rules that apply, in file order. Empty if no rule matched and the default rule does not apply: it
    /// skips this request, or the request is [without default limit](crate::Request::without_default_limit).
    #[must_use]
    pub fn matched(&self) -> &[MatchedRule<'p>] {
        match &self.matched {
            MatchedRules::One(rule) => rule,
            MatchedRules::Many(rules) => rules,
        }
    }

    /// Returns the takes of all rules that apply. Each shadow rule and each set of trial limits is a separate
    /// group.
    ///
    /// # Errors
    /// More than [`MAX_TAKES`] takes; the message names the rules.
    pub fn plan(&self) -> Result<Plan<'_>, PlanError> {
        // Fast path for the usual case: one rule with one enforced limit.
        if let [matched] = self.matched()
            && let Some(take) = matched.only_take()
        {
            return Ok(Plan::of_distinct([take]));
        }
        let takes =
            self.matched().iter().zip(0..).flat_map(|(matched, position)| matched.takes(position));
        let count = self.len();
        if count > MAX_TAKES {
            let rules: Vec<&str> =
                self.matched().iter().map(|matched| matched.rule.name()).collect();
            return Err(PlanError::too_many_of_rules(&rules, count));
        }
        // Rule names are unique, and so are the names of the limits in a rule.
        Ok(Plan::of_distinct(takes))
    }

    /// Returns what one request costs in each take of the plan, in order: the rule's `cost`, and 1 for other units.
    pub(crate) fn cost_factors(&self) -> impl Iterator<Item = u64> {
        let limits = |matched: &'_ MatchedRule<'p>| {
            let cost = matched.rule.cost;
            let limits = matched.limits().iter().chain(matched.next());
            let factor = move |limit: &Limit| if limit.unit().is_requests() { cost } else { 1 };
            limits.map(factor).collect::<Vec<_>>()
        };
        self.matched().iter().flat_map(limits)
    }

    fn len(&self) -> usize {
        self.matched().iter().map(MatchedRule::len).sum()
    }

    /// Returns whether the takes fit into one plan.
    pub(super) fn fits(&self) -> bool {
        self.len() <= MAX_TAKES
    }

    /// Returns whether an override replaces the limits of any rule.
    pub(super) fn is_overridden(&self) -> bool {
        self.matched().iter().any(MatchedRule::is_overridden)
    }

    /// Returns whether no limit applies, not even a shadow limit. Trial limits (`next`) do not count.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.matched().iter().all(|matched| matched.limits().is_empty())
    }

    /// Returns the rule to report if no limit decided: the last rule that matched, else the default rule.
    #[must_use]
    pub fn rule(&self) -> &'p Rule {
        self.matched().last().map_or(self.default, |matched| matched.rule)
    }
}

/// A rule that applies to a request, with the subject that it counts.
#[derive(Debug)]
pub struct MatchedRule<'p> {
    rule: &'p Rule,
    subject: RecycledSubject,
    /// The cost in requests.
    cost: u64,
    other_costs: Option<OtherCosts>,
    /// The limits of the client's override, or the request's own limit.
    override_limits: Option<Arc<[Limit]>>,
    /// The request lacks a `per` fact and the rule has `missing: deny`.
    is_denied: bool,
}

impl<'p> MatchedRule<'p> {
    #[inline]
    pub(super) fn new(
        rule: &'p Rule,
        facts: &NormalizedFacts<'_, '_>,
        request: &RequestView<'_, '_>,
        overrides: Option<&ActiveOverrides>,
    ) -> Self {
        let per = rule.per.iter().map(|fact| facts.counted(fact));
        let subject = RecycledSubject::from_optional(facts.tenant(), per);
        let cost = request.cost.saturating_mul(rule.cost).min(MAX_EXACT);
        let other_costs = request.other_costs.cloned();
        let is_denied = rule.missing() == OnMissingFact::Deny && rule.missing_fact(facts).is_some();
        let override_limits =
            overrides.and_then(|overrides| overrides.limits(rule, &subject, facts));
        let matched = Self { rule, subject, cost, other_costs, override_limits, is_denied };
        if request.is_in_unit_of_rule { matched.in_own_unit(request) } else { matched }
    }

    /// Counts the cost of the request in the unit of the limits, if they all count one other unit than requests.
    #[cold]
    fn in_own_unit(self, request: &RequestView<'_, '_>) -> Self {
        let has_unit = |limit: &&Limit| limit.algorithm().accepts(LimitField::Unit);
        let mut units = self.limits().iter().filter(has_unit).map(Limit::unit);
        let Some(unit) = units.next().cloned() else { return self };
        let is_same = units.all(|other| *other == unit);
        if !is_same || unit.is_requests() || self.other_costs.is_some() {
            return self;
        }
        Self { cost: 0, other_costs: Some(OtherCosts::one(unit, request.cost)), ..self }
    }

    /// The rule with the request's own limit in place of its limits.
    pub(super) fn with_limit(
        rule: &'p Rule,
        facts: &NormalizedFacts<'_, '_>,
        request: &RequestView<'_, '_>,
        limit: &Limit,
    ) -> Self {
        // `in_rule` cannot fail, because the rule name is valid.
        let limit = limit.clone().in_rule(rule.name()).unwrap_or_else(|_| limit.clone());
        // The limit counts requests, whatever the unit of the rule is.
        let request = &RequestView { is_in_unit_of_rule: false, ..*request };
        Self { override_limits: Some(Arc::new([limit])), ..Self::new(rule, facts, request, None) }
    }

    /// Returns the rule.
    #[must_use]
    pub const fn rule(&self) -> &'p Rule {
        self.rule
    }

    /// Returns the subject that the rule counts for this request.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the cost in requests: the request's cost times the rule's `cost`.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns the amount to take from a limit: that of its unit. The rule's `cost` multiplies requests only.
    ///
    /// ```
    /// use tollgate::{Costs, Facts, Limit, Policy, Quota, Request, Unit};
    ///
    /// let policy = Policy::builtin();
    /// let request = Request::new(Facts::new()).with_costs(Costs::requests(1).and("tokens", 1800)?);
    /// let planned = policy.plan(&request);
    /// let tokens = Limit::token_bucket(Quota::per_minute(90_000))?.in_unit(Unit::new("tokens")?)?;
    /// assert_eq!(planned.matched()[0].cost_of(&tokens), 1800);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn cost_of(&self, limit: &Limit) -> u64 {
        amount_of(limit, self.cost, self.other_costs.as_ref())
    }

    /// Returns the limits that decide: a block named `missing` if the request lacks a `per` fact and the rule
    /// has `missing: deny`; else the request's own limit or those of the client's override; else those of the rule.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        match (&self.rule.missing_block, &self.override_limits) {
            (Some(block), _) if self.is_denied => slice::from_ref(block),
            (_, Some(limits)) => limits,
            (_, None) => &self.rule.limits,
        }
    }

    /// Returns whether an [`Override`](crate::Override) or the request's own limit replaces the rule's limits.
    #[must_use]
    pub const fn is_overridden(&self) -> bool {
        self.override_limits.is_some()
    }

    /// Returns the subject in readable form; see [`Subject::key`].
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        self.subject.key()
    }

    fn next(&self) -> &'p [Limit] {
        if self.is_denied { &[] } else { &self.rule.next }
    }

    fn len(&self) -> usize {
        self.limits().len() + self.next().len()
    }

    /// Returns whether the takes of this rule alone fit into one plan.
    pub(super) fn fits(&self) -> bool {
        self.len() <= MAX_TAKES
    }

    /// Returns the take if the rule has exactly one limit and enforces it.
    fn only_take(&self) -> Option<Take<'_>> {
        match (self.limits(), self.next(), self.rule.mode()) {
            ([limit], [], RuleMode::Enforce) => Some(self.take(limit)),
            _ => None,
        }
    }

    fn take<'t>(&'t self, limit: &'t Limit) -> Take<'t> {
        Take::new(Key::new(&self.subject, limit), self.cost_of(limit))
            .with_distribution(self.rule.distribution())
    }

    /// Returns the takes of the rule at `position` in the plan. Shadow groups: `2 * position` for the rule's
    /// limits, `2 * position + 1` for its trial limits.
    fn takes(&self, position: u16) -> impl Iterator<Item = Take<'_>> {
        let take = move |limit| self.take(limit);
        let live = self.limits().iter().map(move |limit| match self.rule.mode() {
            RuleMode::Enforce => take(limit),
            RuleMode::Shadow => take(limit).shadow(2 * position),
        });
        live.chain(self.next().iter().map(move |limit| take(limit).shadow(2 * position + 1)))
    }
}
