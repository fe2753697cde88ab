//! Charges that are settled with the limiter when the response is known.

use std::sync::Arc;

use tokio::time::Instant;
use tollgate::{
    ActivePolicy, Costs, Facts, LimiterError, Observer, Outcome, Query, Receipt, Request, Store,
    Verb,
};

use super::headers::HeaderValues;
use super::settings::Settings;
use crate::background::run_in_background;

/// An admitted request and the policy that admitted it, for a later refund or debit under that policy.
pub(super) struct DeferredCharge<S, O: Observer> {
    settings: Arc<Settings<S, O>>,
    policy: Arc<ActivePolicy<O::Handles>>,
    facts: Box<Facts<'static>>,
    /// The costs taken at admission, and their receipt.
    costs: Costs,
    receipt: Receipt,
    admitted_at: Instant,
}

impl<S: Store + 'static, O: Observer + 'static> DeferredCharge<S, O> {
    pub(super) fn new(
        settings: Arc<Settings<S, O>>,
        policy: Arc<ActivePolicy<O::Handles>>,
        facts: Box<Facts<'static>>,
        (costs, receipt): (Costs, Receipt),
    ) -> Self {
        Self { settings, policy, facts, costs, receipt, admitted_at: Instant::now() }
    }

    /// Refunds what was taken and still counts. Returns the header values after the refund.
    pub(super) async fn refund(self) -> Option<HeaderValues> {
        let Self { settings, policy, facts, costs, receipt, admitted_at } = self;
        let query = Query::ByPolicy(Request::new(*facts).with_costs(costs));
        let receipt = (&receipt, admitted_at.elapsed());
        let encode = |outcome: &Outcome<'_, '_>| settings.settled_headers(outcome);
        settings.report(settings.limiter.refund_receipt(&policy, &query, receipt, encode).await)
    }

    /// Debits the actual cost. Returns the header values after the debit.
    pub(super) async fn debit(self, cost: u64) -> Option<HeaderValues> {
        let Self { settings, policy, facts, .. } = self;
        let query = Query::ByPolicy(Request::new(*facts).with_cost(cost));
        let encode = |outcome: &Outcome<'_, '_>| settings.settled_headers(outcome);
        settings.report(settings.limiter.decide_with(&policy, Verb::Debit, &query, encode).await)
    }

    /// Debits the actual cost when no response is waiting for the result.
    pub(super) fn debit_in_background(self, cost: u64) {
        run_in_background(async move { drop(self.debit(cost).await) });
    }
}

impl<S, O: Observer> Settings<S, O> {
    /// Returns the header values after a settlement. Returns none if no limit decided, so that the response keeps the
    /// values from admission.
    fn settled_headers(&self, outcome: &Outcome<'_, '_>) -> Option<HeaderValues> {
        outcome.decision.deciding().map(|_| self.headers.values(outcome.decision))
    }

    fn report(&self, values: Result<Option<HeaderValues>, LimiterError>) -> Option<HeaderValues> {
        values.inspect_err(|error| self.report_error(error)).ok().flatten()
    }
}

/// A charge that is debited in every case: with the known cost, or with 1 if the client disconnects before the cost is
/// known.
pub(super) struct UnpaidCharge<S: Store + 'static, O: Observer + 'static>(
    Option<Box<DeferredCharge<S, O>>>,
);

impl<S: Store + 'static, O: Observer + 'static> UnpaidCharge<S, O> {
    pub(super) const fn new(charge: Box<DeferredCharge<S, O>>) -> Self {
        Self(Some(charge))
    }

    pub(super) fn into_charge(mut self) -> Option<Box<DeferredCharge<S, O>>> {
        self.0.take()
    }
}

impl<S: Store + 'static, O: Observer + 'static> Drop for UnpaidCharge<S, O> {
    fn drop(&mut self) {
        if let Some(charge) = self.0.take() {
            charge.debit_in_background(1);
        }
    }
}
