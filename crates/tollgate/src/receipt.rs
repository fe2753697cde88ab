//! What a request took, for who may give it back.

use std::time::Duration;

use smallvec::SmallVec;

use crate::limiter::Outcome;
use crate::plan::Plan;

/// What a request took of each limit, and for how long that counts. See [`Limiter::refund_receipt`].
///
/// [`Limiter::refund_receipt`]: crate::Limiter::give_back
#[derive(Debug, Clone)]
pub struct Receipt {
    /// In the plan's order; none where nothing was taken, as by a shadow rule that would have refused.
    counted: SmallVec<[Option<Duration>; 2]>,
}

impl Receipt {
    /// What this outcome took.
    #[must_use]
    pub fn of(outcome: &Outcome<'_, '_>) -> Self {
        let decision = outcome.decision;
        // When a limit is full again at the latest if nobody else takes, what was taken counts no more.
        let counted = decision
            .statuses()
            .iter()
            .map(|status| decision.took(status.mode()).then(|| status.reset_after()));
        Self { counted: counted.collect() }
    }

    /// The takes of this plan, which is that of the same request, that still count after so long.
    pub(crate) fn still_counted<'p>(&self, plan: Plan<'p>, age: Duration) -> Plan<'p> {
        let mut counted = self.counted.iter();
        plan.only(|_| counted.next().copied().flatten().is_some_and(|lasts| age < lasts))
    }
}
