//! Plans of which this node counts a part itself, since their rules are not in the shared store, or not yet.

use super::FallbackStore;
use super::local_decisions::Act;
use crate::clock::Clock;
use crate::decision::{Decision, Source};
use crate::distribution::Distributed;
use crate::permit::Permit;
use crate::plan::{Mode, Plan, Take};
use crate::store::Store;

impl<S: Store, C: Clock> FallbackStore<S, C> {
    /// How much the shared store has to say of a take.
    pub(super) fn reach(&self, take: &Take<'_>) -> Distributed {
        take.distribution().distributed.min(self.at_most)
    }

    /// Decides a plan part by part: what is counted here, what is counted in the store, and what is only
    /// tried there.
    pub(super) async fn in_parts<'a>(&self, act: Act, plan: &Plan<'a>) -> Decision<'a> {
        let part = |wanted: fn(Distributed) -> bool| {
            let takes = plan.takes().iter().filter(|take| wanted(self.reach(take)));
            Plan::of_distinct(takes.copied()).held_by(plan.permit())
        };
        let near = part(|reach| reach != Distributed::On);
        let far = part(|reach| reach == Distributed::On);
        let tried = part(|reach| reach == Distributed::Shadow);
        let (here, there) = self.near_and_far(act, &near, &far).await;
        let decision = self.joined(plan, &here, there.as_ref());
        if tried.takes().is_empty() {
            return decision;
        }
        // What others refuse is taken from nobody, and so from nobody there either.
        let is_refused = self.is_refused_by_others(plan, &decision);
        let act = if act == Act::Take && is_refused { Act::Peek } else { act };
        match self.try_store(act, &tried).await {
            Some(beside) => decision.with_shadow(beside),
            None => decision,
        }
    }

    /// Whether a limit refuses that is not only tried in the store.
    fn is_refused_by_others(&self, plan: &Plan<'_>, decision: &Decision<'_>) -> bool {
        plan.takes().iter().zip(decision.statuses()).any(|(take, status)| {
            self.reach(take) != Distributed::Shadow
                && take.mode() == Mode::Enforce
                && !status.verdict().is_allowed()
        })
    }

    /// Takes here first: that waits for nobody, and is given back if the store then refuses.
    async fn near_and_far<'a>(
        &self,
        act: Act,
        near: &Plan<'a>,
        far: &Plan<'a>,
    ) -> (Decision<'a>, Option<Decision<'a>>) {
        let here = act.on(&self.local, near);
        if far.takes().is_empty() {
            return (here, None);
        }
        let is_refused = act == Act::Take && !here.is_allowed();
        let there = self.ask(if is_refused { Act::Peek } else { act }, far).await;
        if act != Act::Take || is_refused || there.is_allowed() {
            return (here, Some(there));
        }
        self.refund_receipt(near, &here);
        (self.local.peek(near), Some(there))
    }

    fn refund_receipt(&self, near: &Plan<'_>, here: &Decision<'_>) {
        let taken = near.takes().iter().filter(|take| here.took(take.mode()));
        let _ = self.local.refund(&Plan::of_distinct(taken.copied()));
        if let Some(permit) = Permit::of(near, here) {
            self.local.release(&permit);
        }
    }

    /// One decision of both, in the plan's order.
    fn joined<'a>(
        &self,
        plan: &Plan<'a>,
        here: &Decision<'a>,
        there: Option<&Decision<'a>>,
    ) -> Decision<'a> {
        let at = here.at();
        let mut near = here.statuses().iter().copied();
        let mut far = there.into_iter().flat_map(Decision::statuses).copied();
        let statuses = plan.takes().iter().filter_map(|take| match self.reach(take) {
            Distributed::On => far.next(),
            _ => near.next(),
        });
        let joined = Decision::new(at, statuses);
        let source = match there {
            Some(there) if !self.is_refused_here(plan, &joined) => there.source(),
            _ => Source::Local,
        };
        let joined = joined.from_source(source);
        match there.and_then(Decision::loss) {
            Some(loss) => joined.degraded(loss),
            None => joined,
        }
    }

    /// Whether the limit that refuses is one that this node counts itself.
    fn is_refused_here(&self, plan: &Plan<'_>, decision: &Decision<'_>) -> bool {
        let deciding = decision.deciding().filter(|status| !status.verdict().is_allowed());
        let mut decided = plan.takes().iter().zip(decision.statuses());
        let found = decided.find(|(_, status)| deciding == Some(*status));
        found.is_some_and(|(take, _)| self.reach(take) != Distributed::On)
    }

    /// What the store says of takes that it does not decide; none if it cannot be asked.
    async fn try_store<'a>(&self, act: Act, plan: &Plan<'a>) -> Option<Decision<'a>> {
        if !self.breaker.is_closed() {
            return None;
        }
        let asked = self.breaker.asked();
        let answer = self.act(act, plan).await;
        self.heard(asked, answer).ok()
    }
}
