//! Checks every decision: the store's answers if it replied, else the node's answers for its shares.

use std::sync::Arc;

use tollgate::{Decision, OnStoreLoss, Source};

use super::{Admission, Check, DecidedBy, HeldSlots, Stage};
use crate::answer::Answer;
use crate::simulator::request::{Action, KeyCost, Request};
use crate::simulator::virtual_time::TaskId;
use crate::spec::Kind;

/// A request that its node has begun to decide.
#[derive(Debug)]
pub(in crate::simulator) struct Begun {
    /// Answers for the keys outside the shared store.
    local: Vec<Answer>,
}

impl Check {
    /// A node begins a request: it runs the keys outside the shared store immediately.
    pub(in crate::simulator) fn request_begins(
        &mut self,
        node: usize,
        request: &Request,
        now: u64,
    ) -> Begun {
        self.log(now, || format!("node {node} receives {request:?}"));
        let scenario = Arc::clone(&self.scenario);
        let local = request.filter_keys(|key| !scenario.is_shared(key));
        Begun { local: self.nodes[node].run_local(&local, now) }
    }

    /// A node begins to release or renew a permit. Returns true if that must succeed without the store.
    pub(in crate::simulator) fn permit_begins(
        &mut self,
        node: usize,
        request: &Request,
        now: u64,
    ) -> bool {
        self.log(now, || format!("node {node} receives {request:?}"));
        let scenario = Arc::clone(&self.scenario);
        let is_held = self.nodes[node].run_permit(&scenario, request, now);
        if request.action == Action::Release {
            self.for_each_held(request, |held, _| held.until = held.until.min(now));
        }
        is_held
    }

    /// The release or renewal ended.
    pub(in crate::simulator) fn permit_ended(
        &mut self,
        request: &Request,
        is_held: bool,
        is_done: bool,
    ) {
        self.require(0, !is_held || is_done, || {
            format!("{request:?} failed although the node holds slots of the permit")
        });
    }

    /// A permit was renewed: its ttl restarts when the renewal began.
    pub(in crate::simulator) fn permit_renewed(&mut self, request: &Request, began: u64) {
        self.for_each_held(request, |held, ttl| {
            if held.until > began {
                held.until = held.until.max(began + ttl);
            }
        });
    }

    fn for_each_held(&mut self, request: &Request, change: impl Fn(&mut HeldSlots, u64)) {
        let scenario = Arc::clone(&self.scenario);
        let slots = self.held_slots.iter_mut().filter(|held| held.permit == request.permit);
        slots.for_each(|held| change(held, scenario.specs[held.key].window_us));
    }

    /// A request is decided.
    pub(in crate::simulator) fn request_decided(
        &mut self,
        (node, task): (usize, TaskId),
        request: &Request,
        begun: Begun,
        decision: &Decision<'_>,
        now: u64,
    ) {
        self.log(now, || describe(node, request, decision));
        self.note_aged_debit(request, now);
        self.figures.decisions += 1;
        let scenario = Arc::clone(&self.scenario);
        let shared = request.filter_keys(|key| scenario.is_shared(key));
        let local = request.filter_keys(|key| !scenario.is_shared(key));
        let is_allowed_locally = begun.local.iter().all(Answer::is_allowed);
        let is_refused = request.action == Action::Take && !is_allowed_locally;
        let shared = if is_refused { shared.with_action(Action::Peek) } else { shared };
        let reply = self.replies.remove(&task);
        let answers = reply.as_ref().and_then(|reply| reply.answers.as_ref());
        let shared_answers = if shared.costs.is_empty() {
            self.check_shadow(&local, decision, answers, now);
            Vec::new()
        } else if decision.is_degraded() {
            self.check_degraded_marks(&shared, decision, now);
            self.decide_degraded((node, task), &shared, now)
        } else {
            self.check_store_marks(request, decision, now);
            answers.cloned().unwrap_or_default()
        };
        let mut local_answers = begun.local;
        let is_allowed_by_store = shared_answers.iter().all(Answer::is_allowed);
        if request.action == Action::Take && is_allowed_locally && !is_allowed_by_store {
            local_answers = self.refund_local(node, &local, now);
        }
        self.check_answers(request, decision, (shared_answers, local_answers), now);
        if request.action == Action::Take && decision.is_allowed() {
            let by = match decision.is_degraded() {
                true => DecidedBy::Node(node),
                false => DecidedBy::Store,
            };
            self.admit(&shared, by, reply.map_or(now, |reply| reply.at));
        }
        self.check_full(request, decision, now);
    }

    /// Returns the answers of a node without the store. A refund that may have run in the store is not credited.
    fn decide_degraded(
        &mut self,
        (node, task): (usize, TaskId),
        shared: &Request,
        now: u64,
    ) -> Vec<Answer> {
        self.figures.degraded += 1;
        let scenario = Arc::clone(&self.scenario);
        let shared = if self.uncertain_refunds.remove(&task) {
            self.figures.uncertain_refunds += 1;
            shared.without_costs()
        } else {
            self.note_refund(shared, DecidedBy::Node(node), now);
            shared.clone()
        };
        self.nodes[node].decide_degraded(&scenario, &shared, now)
    }

    /// Refunds what was taken locally before the store refused.
    fn refund_local(&mut self, node: usize, local: &Request, now: u64) -> Vec<Answer> {
        self.figures.refunds += u64::from(!local.costs.is_empty());
        let model = &mut self.nodes[node];
        model.run_local(&local.with_action(Action::Refund), now);
        if local.permit.is_some() {
            model.run_local(&local.with_action(Action::Release), now);
        }
        model.run_local(&local.with_action(Action::Peek), now)
    }

    /// Checks the status of every key, in the order of the request.
    fn check_answers(
        &mut self,
        request: &Request,
        decision: &Decision<'_>,
        (shared, local): (Vec<Answer>, Vec<Answer>),
        now: u64,
    ) {
        let scenario = Arc::clone(&self.scenario);
        let (mut shared, mut local) = (shared.into_iter(), local.into_iter());
        let expected: Vec<Option<Answer>> = request
            .costs
            .iter()
            .map(|cost| if scenario.is_shared(cost.key) { shared.next() } else { local.next() })
            .collect();
        let answers = decision.statuses().iter().map(|status| Some(Answer::from(status)));
        self.require(now, answers.eq(expected.iter().copied()), || {
            format!("{request:?}: {decision:?}, expected {expected:?}")
        });
    }

    /// Checks the source: the store, unless a limit outside it refuses.
    fn check_store_marks(&mut self, request: &Request, decision: &Decision<'_>, now: u64) {
        let is_local = |cost: &KeyCost| !self.scenario.is_shared(cost.key);
        let mut statuses = request.costs.iter().zip(decision.statuses());
        // The first of equals decides.
        let deciding = statuses.find(|(_, status)| decision.deciding() == Some(*status));
        let is_decided_locally = deciding.is_some_and(|(cost, _)| is_local(cost));
        let expected = match is_decided_locally && !decision.is_allowed() {
            true => Source::Local,
            false => Source::Store,
        };
        let is_marked = decision.source() == expected && decision.loss().is_none();
        self.require(now, is_marked, || format!("not marked as the store's: {decision:?}"));
    }

    fn check_degraded_marks(&mut self, shared: &Request, decision: &Decision<'_>, now: u64) {
        let has = |wanted| {
            shared.costs.iter().any(|cost| self.scenario.on_store_loss(cost.key) == wanted)
        };
        let by_strictness = [OnStoreLoss::Deny, OnStoreLoss::Local, OnStoreLoss::Allow];
        let expected = by_strictness.into_iter().find(|wanted| has(*wanted));
        let is_marked = decision.source() == Source::Local && decision.loss() == expected;
        self.require(now, is_marked, || format!("not marked as degraded: {decision:?}"));
    }

    /// Checks a decision without the store: it is local, and its shadow decision is the store's.
    fn check_shadow(
        &mut self,
        local: &Request,
        decision: &Decision<'_>,
        expected: Option<&Vec<Answer>>,
        now: u64,
    ) {
        let is_marked = decision.source() == Source::Local && !decision.is_degraded();
        self.require(now, is_marked, || format!("not marked as local: {decision:?}"));
        let shadow = decision.shadow_decision();
        let shadow = shadow.map(|shadow| shadow.statuses().iter().map(Answer::from));
        let shadow: Option<Vec<Answer>> = shadow.map(Iterator::collect);
        self.figures.shadow_decisions += u64::from(shadow.is_some());
        self.require(now, shadow.as_ref() == expected, || {
            format!("{local:?}: the shadow decision is {shadow:?}, expected {expected:?}")
        });
    }

    fn admit(&mut self, shared: &Request, by: DecidedBy, at: u64) {
        let scenario = Arc::clone(&self.scenario);
        for cost in shared.costs.iter().filter(|cost| cost.cost > 0) {
            self.admissions[cost.key].push(Admission { at, cost: cost.cost, by });
            let spec = &scenario.specs[cost.key];
            if spec.algorithm == Kind::Concurrency {
                let (key, permit, until) = (cost.key, shared.permit, at + spec.window_us);
                self.held_slots.push(HeldSlots { key, permit, cost: cost.cost, from: at, until });
            }
        }
    }

    /// After the hour, checks that all limits are full: in the store, and on each node without it.
    fn check_full(&mut self, request: &Request, decision: &Decision<'_>, now: u64) {
        let is_lost = match self.stage {
            Stage::Hour => return,
            Stage::Full => false,
            Stage::FullAndLost => true,
        };
        let is_shared = request.costs.iter().any(|cost| self.scenario.is_shared(cost.key));
        let is_denied = decision.loss() == Some(OnStoreLoss::Deny);
        let is_expected =
            decision.is_allowed() != is_denied && decision.is_degraded() == (is_shared && is_lost);
        self.require(now, is_expected, || {
            format!("all limits are full, and {request:?} is decided {decision:?}")
        });
    }
}

fn describe(node: usize, request: &Request, decision: &Decision<'_>) -> String {
    let verdict = decision.verdict();
    let loss = decision.loss().map_or("", OnStoreLoss::as_str);
    format!("node {node} returns {verdict:?} {loss} for {request:?}")
}
