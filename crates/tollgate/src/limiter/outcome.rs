//! What comes of a question.

use std::borrow::Cow;

use crate::decision::Decision;
use crate::permit::Permit;
use crate::plan::Plan;
use crate::policy::TriedRule;
use crate::query::ResolvedQuery;
use crate::time::Timestamp;

/// A decision with what led to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome<'o, 'p> {
    /// What applied, and to whom.
    pub applied: &'o ResolvedQuery<'o>,
    /// The takes.
    pub plan: &'o Plan<'p>,
    /// What the store said.
    pub decision: &'o Decision<'p>,
    /// What gives slots of concurrency limits back, if any were taken.
    pub permit: Option<Permit>,
    /// When the first of those slots returns by itself.
    pub expires_at: Option<Timestamp>,
}

impl<'o, 'p> Outcome<'o, 'p> {
    pub(super) fn new(
        applied: &'o ResolvedQuery<'o>,
        plan: &'o Plan<'p>,
        decision: &'o Decision<'p>,
    ) -> Self {
        let permit = Permit::of(plan, decision);
        let expires_at = permit.as_ref().and_then(|_| Permit::expires_at(plan, decision));
        Self { applied, plan, decision, permit, expires_at }
    }

    /// The rule of the limit that decided; where none did, the last that applied.
    #[must_use]
    pub fn rule(&self) -> &str {
        let deciding = self.decision.deciding();
        deciding.map_or_else(|| self.applied.last_rule(), |status| status.limit().rule())
    }

    /// Whom that rule counts, as people call it.
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        self.applied.key_of(self.rule())
    }
}

/// Why a request would be decided as it would be.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Explanation<'o, 'p> {
    /// Every rule that was tried, in order; none for limits that came with the request.
    pub tried: &'o [TriedRule],
    /// What is counted now.
    pub now: &'o Decision<'p>,
    /// What a take would be told.
    pub outcome: &'o Outcome<'o, 'p>,
}
