//! What is settled with the limiter when more is known of a request.

use std::sync::Arc;

use tokio::time::Instant;
use tollgate::{
    ActivePolicy, Facts, LimiterError, Observer, Outcome, Query, Receipt, Request, Store, Verb,
};

use super::headers::Fields;
use super::settings::Settings;
use crate::background::detach;

/// A request that was let in, so that it can be settled by the policy that let it in.
pub(super) struct Bill<S, O: Observer> {
    settings: Arc<Settings<S, O>>,
    current: Arc<ActivePolicy<O::Handles>>,
    facts: Box<Facts<'static>>,
    /// What it cost when it came, and what that took.
    cost: u64,
    taken: Receipt,
    came: Instant,
}

impl<S: Store + 'static, O: Observer + 'static> Bill<S, O> {
    pub(super) fn new(
        settings: Arc<Settings<S, O>>,
        current: Arc<ActivePolicy<O::Handles>>,
        facts: Box<Facts<'static>>,
        (cost, taken): (u64, Receipt),
    ) -> Self {
        Self { settings, current, facts, cost, taken, came: Instant::now() }
    }

    /// Gives back what was taken and still counts, and says what is left then.
    pub(super) async fn refund_receipt(self) -> Option<Fields> {
        let Self { settings, current, facts, cost, taken, came } = self;
        let asked = Query::ByPolicy(Request::new(*facts).with_cost(cost));
        let taken = (&taken, came.elapsed());
        let left = |outcome: &Outcome<'_, '_>| settings.left(outcome);
        settings.settled(settings.limiter.refund_receipt(&current, &asked, taken, left).await)
    }

    /// Takes what it turned out to cost, and says what is left then.
    pub(super) async fn pay(self, cost: u64) -> Option<Fields> {
        let Self { settings, current, facts, .. } = self;
        let asked = Query::ByPolicy(Request::new(*facts).with_cost(cost));
        let left = |outcome: &Outcome<'_, '_>| settings.left(outcome);
        settings.settled(settings.limiter.decide_with(&current, Verb::Debit, &asked, left).await)
    }

    /// The same, when nobody waits for it any more.
    pub(super) fn pay_later(self, cost: u64) {
        detach(async move { drop(self.pay(cost).await) });
    }
}

impl<S, O: Observer> Settings<S, O> {
    /// What is left after a settlement; none if no limit was left to settle with, so that what was told when the
    /// request came still is.
    fn left(&self, outcome: &Outcome<'_, '_>) -> Option<Fields> {
        outcome.decision.deciding().map(|_| self.telling.of(outcome.decision))
    }

    fn settled(&self, left: Result<Option<Fields>, LimiterError>) -> Option<Fields> {
        left.inspect_err(|error| self.failed(error)).ok().flatten()
    }
}

/// A bill that is paid in any case: by what is said, or by 1 if the client is gone before anything is known.
pub(super) struct Unpaid<S: Store + 'static, O: Observer + 'static>(Option<Box<Bill<S, O>>>);

impl<S: Store + 'static, O: Observer + 'static> Unpaid<S, O> {
    pub(super) const fn new(bill: Box<Bill<S, O>>) -> Self {
        Self(Some(bill))
    }

    pub(super) fn into_bill(mut self) -> Option<Box<Bill<S, O>>> {
        self.0.take()
    }
}

impl<S: Store + 'static, O: Observer + 'static> Drop for Unpaid<S, O> {
    fn drop(&mut self) {
        if let Some(bill) = self.0.take() {
            bill.pay_later(1);
        }
    }
}
