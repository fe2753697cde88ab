//! Outcomes and explanations of queries, borrowed from the limiter.

use std::borrow::Cow;

use crate::decision::{Decision, OwnedDecision, Permit};
use crate::limiter::ResolvedQuery;
use crate::plan::Plan;
use crate::policy::TriedRule;
use crate::time::Timestamp;

/// A decision together with the query and the plan behind it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome<'o, 'p> {
    /// The query with the rules or inline limits that apply to it.
    pub query: &'o ResolvedQuery<'o>,
    /// The takes that the store decided.
    pub plan: &'o Plan<'p>,
    /// The decision.
    pub decision: &'o Decision<'p>,
    /// The permit that holds the slots of concurrency limits, if any were taken.
    pub permit: Option<Permit>,
    /// The store's time at which the first slot of the permit expires.
    pub expires_at: Option<Timestamp>,
}

impl<'o, 'p> Outcome<'o, 'p> {
    pub(super) fn new(
        query: &'o ResolvedQuery<'o>,
        plan: &'o Plan<'p>,
        decision: &'o Decision<'p>,
    ) -> Self {
        let permit = Permit::of(plan, decision);
        let expires_at = permit.as_ref().and_then(|_| Permit::expires_at(plan, decision));
        Self { query, plan, decision, permit, expires_at }
    }

    /// The rule of the deciding limit; the last rule that matched if no limit applies.
    #[must_use]
    pub fn rule(&self) -> &str {
        let deciding = self.decision.deciding();
        deciding.map_or_else(|| self.query.last_rule(), |status| status.limit().rule())
    }

    /// The key that the deciding rule counts, in readable form.
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        self.query.key_of(self.rule())
    }

    /// Copies the decision, with its rule, key and permit, into a value that borrows nothing.
    pub fn to_owned_decision(&self) -> OwnedDecision {
        OwnedDecision::new(self.plan, self.decision, self.query.last_rule(), self.key())
    }
}

/// The explanation of a query.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Explanation<'o, 'p> {
    /// The rules tried, in order; empty for inline limits.
    pub tried: &'o [TriedRule],
    /// The state before the take.
    pub now: &'o Decision<'p>,
    /// The outcome that a check would have.
    pub outcome: &'o Outcome<'o, 'p>,
}
