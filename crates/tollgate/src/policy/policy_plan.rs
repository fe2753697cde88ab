//! What a policy makes of a request: which rules, on whom, and the plan.

use std::borrow::Cow;
use std::slice;
use std::sync::Arc;

use crate::limit::Limit;
use crate::plan::{Key, MAX_TAKES, Plan, PlanError, Take};
use crate::subject::Subject;
use crate::time::MAX_EXACT;

use super::overrides::ActiveOverrides;
use super::rule::{OnMissingFact, Rule, RuleMode};
use super::view::View;

/// The rules that decide a request, and the subjects they count.
///
/// ```
/// use tollgate::policy::Policy;
/// use tollgate::{Facts, MemoryStore, Request};
///
/// let (policy, store) = (Policy::builtin(), MemoryStore::new());
/// let planned = policy.plan(&Request::new(Facts::of([("client", "c1")])?));
/// let decision_plan = planned.plan()?;
/// let decision = store.take(&decision_plan);
/// assert_eq!(decision.remaining(), Some(99));
/// assert_eq!(planned.matched()[0].key(), "c1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PolicyPlan<'p> {
    matched: Found<'p>,
    default: &'p Rule,
}

/// The rules that apply: almost always one, and then without an allocation. A `SmallVec` would be
/// invariant, and nobody could hold a plan beside what it was made of.
#[derive(Debug)]
enum Found<'p> {
    One([MatchedRule<'p>; 1]),
    Any(Vec<MatchedRule<'p>>),
}

impl<'p> PolicyPlan<'p> {
    pub(super) fn new(
        mut matched: impl Iterator<Item = MatchedRule<'p>>,
        default: &'p Rule,
    ) -> Self {
        let matched = match (matched.next(), matched.next()) {
            (Some(one), None) => Found::One([one]),
            (one, other) => Found::Any(one.into_iter().chain(other).chain(matched).collect()),
        };
        Self { matched, default }
    }

    /// The rules that apply, in their order. None if only a default applies that skips this request.
    #[must_use]
    pub fn matched(&self) -> &[MatchedRule<'p>] {
        match &self.matched {
            Found::One(one) => one,
            Found::Any(all) => all,
        }
    }

    /// The takes of all rules that apply. Shadow rules and trial limits are each a group of their own.
    ///
    /// # Errors
    /// More than [`MAX_TAKES`] takes; the message names the rules.
    pub fn plan(&self) -> Result<Plan<'_>, PlanError> {
        // The usual case, without the machinery of the others.
        if let [matched] = self.matched()
            && let Some(take) = matched.only_take()
        {
            return Ok(Plan::of_distinct([take]));
        }
        let takes =
            self.matched().iter().zip(0..).flat_map(|(matched, group)| matched.takes(group));
        let length = self.len();
        if length > MAX_TAKES {
            let rules: Vec<&str> =
                self.matched().iter().map(|matched| matched.rule.name()).collect();
            return Err(PlanError::too_many_of_rules(&rules, length));
        }
        // Rules have names of their own, and so have the limits in each.
        Ok(Plan::of_distinct(takes))
    }

    fn len(&self) -> usize {
        self.matched().iter().map(MatchedRule::len).sum()
    }

    /// Whether it is not too much for one plan.
    pub(super) fn fits(&self) -> bool {
        self.len() <= MAX_TAKES
    }

    /// Whether some client's own limits are among them.
    pub(super) fn is_overridden(&self) -> bool {
        self.matched().iter().any(MatchedRule::is_overridden)
    }

    /// Whether no limit applies, not even one in shadow.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.matched().iter().all(|matched| matched.limits().is_empty())
    }

    /// The rule to name when no limit decided: the one that ended the search.
    #[must_use]
    pub fn rule(&self) -> &'p Rule {
        self.matched().last().map_or(self.default, |matched| matched.rule)
    }
}

/// A rule that applies to a request, and whom it counts.
#[derive(Debug)]
pub struct MatchedRule<'p> {
    rule: &'p Rule,
    subject: Subject,
    cost: u64,
    /// The client's own limits.
    own: Option<Arc<[Limit]>>,
    /// It lacks a fact, and the rule refuses such requests.
    is_refused: bool,
}

impl<'p> MatchedRule<'p> {
    pub(super) fn new(
        rule: &'p Rule,
        view: &View<'_, '_>,
        cost: u64,
        overrides: Option<&ActiveOverrides>,
    ) -> Self {
        let subject =
            Subject::from_optional(view.tenant(), rule.per.iter().map(|fact| view.get(fact)));
        let cost = cost.saturating_mul(rule.cost).min(MAX_EXACT);
        let is_refused = rule.missing() == OnMissingFact::Deny && rule.lacking(view).is_some();
        let own = overrides.and_then(|overrides| overrides.limits(rule, &subject, view));
        Self { rule, subject, cost, own, is_refused }
    }

    /// The rule.
    #[must_use]
    pub const fn rule(&self) -> &'p Rule {
        self.rule
    }

    /// Whom it counts.
    #[must_use]
    pub const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// What is taken from each of its limits.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// The limits that decide: the client's own, or the rule's, or a block called `missing` where the
    /// request lacks a fact and the rule denies those.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        match (&self.rule.refusal, &self.own) {
            (Some(block), _) if self.is_refused => slice::from_ref(block),
            (_, Some(own)) => own,
            (_, None) => &self.rule.limits,
        }
    }

    /// Whether an [`Override`](crate::Override) has replaced the rule's limits.
    #[must_use]
    pub const fn is_overridden(&self) -> bool {
        self.own.is_some()
    }

    /// What people call the key: the value itself where the rule is keyed by one fact, else the
    /// escaped values joined by `:`. `*` is everyone together, `*anonymous*` those whose one fact is
    /// not known.
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        self.subject.key()
    }

    fn next(&self) -> &'p [Limit] {
        if self.is_refused { &[] } else { &self.rule.next }
    }

    fn len(&self) -> usize {
        self.limits().len() + self.next().len()
    }

    /// Its take, if it is a rule of one limit that is enforced.
    fn only_take(&self) -> Option<Take<'_>> {
        match (self.limits(), self.next(), self.rule.mode()) {
            ([limit], [], RuleMode::Enforce) => Some(self.take(limit)),
            _ => None,
        }
    }

    fn take<'t>(&'t self, limit: &'t Limit) -> Take<'t> {
        Take::new(Key::new(&self.subject, limit), self.cost)
            .with_distribution(self.rule.distribution())
    }

    /// Its takes, as the n-th rule of a plan.
    fn takes(&self, nth: u16) -> impl Iterator<Item = Take<'_>> {
        let take = move |limit| self.take(limit);
        let live = self.limits().iter().map(move |limit| match self.rule.mode() {
            RuleMode::Enforce => take(limit),
            RuleMode::Shadow => take(limit).shadow(2 * nth),
        });
        live.chain(self.next().iter().map(move |limit| take(limit).shadow(2 * nth + 1)))
    }
}
