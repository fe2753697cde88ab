//! Plans whose takes are not all counted in one store, or are in shadow in the shared store.

use super::FallbackStore;
use super::local_decisions::{Operation, strictest};
use crate::decision::{Decision, Permit, Source};
use crate::plan::{Distributed, Mode, Plan, Take};
use crate::store::{Store, StoreError};
use crate::time::Clock;

impl<S: Store, C: Clock, L: Store> FallbackStore<S, C, L> {
    /// Returns where a take is counted.
    pub(super) fn distributed(&self, take: &Take<'_>) -> Distributed {
        take.distribution().distributed.min(self.max_distribution)
    }

    /// Decides a plan in parts: the takes counted in this node, those counted in the shared store, and those in
    /// shadow there.
    pub(super) async fn decide_mixed<'a>(
        &self,
        operation: Operation,
        plan: &Plan<'a>,
    ) -> Result<Decision<'a>, StoreError> {
        let part = |is_in: fn(Distributed) -> bool| {
            let takes = plan.takes().iter().filter(|take| is_in(self.distributed(take)));
            Plan::of_distinct(takes.copied()).held_by(plan.permit())
        };
        let local = part(|distributed| distributed != Distributed::On);
        let shared = part(|distributed| distributed == Distributed::On);
        let shadow = part(|distributed| distributed == Distributed::Shadow);
        let (in_local, in_shared) = self.decide_parts(operation, &local, &shared).await?;
        let decision = self.merge(plan, &in_local, in_shared.as_ref());
        if shadow.takes().is_empty() {
            return Ok(decision);
        }
        // A plan that other takes refuse takes nothing in shadow either.
        let is_refused = self.is_refused_outside_shadow(plan, &decision);
        let operation = peek_if(is_refused, operation);
        Ok(match self.call_in_shadow(operation, &shadow).await {
            Some(in_shadow) => decision.with_shadow(in_shadow),
            None => decision,
        })
    }

    /// Returns true if a take that is not in shadow in the shared store refuses.
    fn is_refused_outside_shadow(&self, plan: &Plan<'_>, decision: &Decision<'_>) -> bool {
        plan.takes().iter().zip(decision.statuses()).any(|(take, status)| {
            self.distributed(take) != Distributed::Shadow
                && take.mode() == Mode::Enforce
                && !status.verdict().is_allowed()
        })
    }

    /// Decides the takes of the local store and those of the shared store. If the shared store is overloaded, neither
    /// has changed.
    async fn decide_parts<'a>(
        &self,
        operation: Operation,
        local: &Plan<'a>,
        shared: &Plan<'a>,
    ) -> Result<(Decision<'a>, Option<Decision<'a>>), StoreError> {
        if operation == Operation::Take && !shared.takes().is_empty() {
            return self.take_parts(local, shared).await;
        }
        let in_shared = match shared.takes().is_empty() {
            true => None,
            false => Some(self.decide_shared(operation, shared).await?),
        };
        let reply = self.call_local(operation, local).await;
        Ok((self.local_decision(local, reply), in_shared))
    }

    /// Takes in the local store, then in the shared store. If the shared store refuses or is overloaded, refunds the
    /// local takes.
    async fn take_parts<'a>(
        &self,
        local: &Plan<'a>,
        shared: &Plan<'a>,
    ) -> Result<(Decision<'a>, Option<Decision<'a>>), StoreError> {
        let reply = self.call_local(Operation::Take, local).await;
        let has_replied = reply.is_ok();
        let in_local = self.local_decision(local, reply);
        let is_refused = !in_local.is_allowed();
        let in_shared = self.decide_shared(peek_if(is_refused, Operation::Take), shared).await;
        let is_taken_in_both = in_shared.as_ref().is_ok_and(Decision::is_allowed);
        if is_refused || !has_replied || is_taken_in_both {
            return Ok((in_local, Some(in_shared?)));
        }
        self.refund_local(local, &in_local).await;
        let in_shared = in_shared?;
        let peeked = self.call_local(Operation::Peek, local).await;
        Ok((self.local_decision(local, peeked), Some(in_shared)))
    }

    /// Refunds what a plan took in the local store, and releases its slots. If that fails, they stay in use until
    /// they refill or expire.
    async fn refund_local(&self, plan: &Plan<'_>, decision: &Decision<'_>) {
        let taken = plan.takes().iter().filter(|take| decision.took(take.mode()));
        let taken = Plan::of_distinct(taken.copied());
        let _ = self.report_local(self.call_local(Operation::Refund, &taken).await);
        if let Some(permit) = Permit::of(plan, decision) {
            let _ = self.report_local(self.local.release(&permit).await);
        }
    }

    /// Merges the decisions of both stores, with the statuses in the plan's order.
    fn merge<'a>(
        &self,
        plan: &Plan<'a>,
        in_local: &Decision<'a>,
        in_shared: Option<&Decision<'a>>,
    ) -> Decision<'a> {
        let at = in_local.at();
        let mut local = in_local.statuses().iter().copied();
        let mut shared = in_shared.into_iter().flat_map(Decision::statuses).copied();
        let statuses = plan.takes().iter().filter_map(|take| match self.distributed(take) {
            Distributed::On => shared.next(),
            _ => local.next(),
        });
        let merged = Decision::new(at, statuses);
        let source = match in_shared {
            Some(in_shared) if !self.is_refused_locally(plan, &merged) => in_shared.source(),
            _ => Source::Local,
        };
        let merged = merged.from_source(source);
        let losses = [in_local.loss(), in_shared.and_then(Decision::loss)];
        match strictest(losses.into_iter().flatten()) {
            Some(loss) => merged.degraded(loss),
            None => merged,
        }
    }

    /// Returns true if the deciding limit refuses and is counted in this node.
    fn is_refused_locally(&self, plan: &Plan<'_>, decision: &Decision<'_>) -> bool {
        let deciding = decision.deciding().filter(|status| !status.verdict().is_allowed());
        let mut takes = plan.takes().iter().zip(decision.statuses());
        let refusing = takes.find(|(_, status)| deciding == Some(*status));
        refusing.is_some_and(|(take, _)| self.distributed(take) != Distributed::On)
    }

    /// Calls the shared store for takes that it does not decide. Returns `None` if it is lost or the call fails.
    async fn call_in_shadow<'a>(
        &self,
        operation: Operation,
        plan: &Plan<'a>,
    ) -> Option<Decision<'a>> {
        if !self.breaker.is_closed() {
            return None;
        }
        self.call_shared(operation, plan).await.ok()
    }
}

/// Turns the take of a refused plan into a peek.
fn peek_if(is_refused: bool, operation: Operation) -> Operation {
    if is_refused && operation == Operation::Take { Operation::Peek } else { operation }
}
