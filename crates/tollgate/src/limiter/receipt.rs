//! Receipts: what a request took, for a later refund.

use std::time::Duration;

use smallvec::SmallVec;

use super::Outcome;
use crate::plan::Plan;

/// The amounts that a request took from each limit and how long they count. See
/// [`Limiter::refund_receipt`](crate::Limiter::refund_receipt).
#[derive(Debug, Clone)]
pub struct Receipt {
    /// How long each take counts, in plan order; `None` if it took nothing, as in a shadow rule that would refuse.
    counted: SmallVec<[Option<Duration>; 2]>,
}

impl Receipt {
    /// Creates the receipt of an outcome.
    #[must_use]
    pub fn of(outcome: &Outcome<'_, '_>) -> Self {
        let decision = outcome.decision;
        // A take counts at most until its limit is full again, without other takes.
        let counted = decision
            .statuses()
            .iter()
            .map(|status| decision.took(status.mode()).then(|| status.reset_after()));
        Self { counted: counted.collect() }
    }

    /// Keeps the takes of the same request's plan that still count after `age`.
    pub(crate) fn still_counted<'p>(&self, plan: Plan<'p>, age: Duration) -> Plan<'p> {
        let mut counted = self.counted.iter();
        plan.only(|_| counted.next().copied().flatten().is_some_and(|counts_for| age < counts_for))
    }
}
