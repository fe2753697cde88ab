//! Every answer to a caller: the store's own where it was heard, and the node's by its share where it was not.

use std::sync::Arc;

use tollgate::{Decision, Distributed, OnStoreLoss, Source};

use super::mirror::Held;
use super::{Admission, By, Check, Holding, Holds, Stage};
use crate::answer::Answer;
use crate::simulator::clockwork::TaskId;
use crate::simulator::request::{Act, Request, Want};
use crate::spec::Kind;

/// What is known of a request once its node has begun it.
#[derive(Debug)]
pub(in crate::simulator) struct Begun {
    /// What the node counts itself, whatever the store says.
    near: Vec<Answer>,
}

/// Whether a permit was given back or renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::simulator) enum Worked {
    Yes,
    No,
}

impl Check {
    /// A caller asks a node. What that counts itself it counts at once.
    pub(in crate::simulator) fn begins(
        &mut self,
        node: usize,
        request: &Request,
        now: u64,
    ) -> Begun {
        self.note(now, || format!("node {node} is asked {request:?}"));
        let setting = Arc::clone(&self.setting);
        let near = request.part(|key| setting.reach(key) != Distributed::On);
        Begun { near: self.mirrors[node].near(&near, now) }
    }

    /// A caller gives a permit back, or renews it. Tells whether that must work without the store.
    pub(in crate::simulator) fn permits(
        &mut self,
        node: usize,
        request: &Request,
        now: u64,
    ) -> Held {
        self.note(now, || format!("node {node} is asked {request:?}"));
        let setting = Arc::clone(&self.setting);
        let held = self.mirrors[node].of_permit(&setting, request, now);
        if request.act == Act::Release {
            self.each_holding(request, |holding, _| holding.until = holding.until.min(now));
        }
        held
    }

    /// It worked, or not.
    pub(in crate::simulator) fn permitd(&mut self, request: &Request, held: Held, worked: Worked) {
        let holds = Holds::from(held == Held::Elsewhere || worked == Worked::Yes);
        self.hold(0, holds, || format!("{request:?} failed although the permit was held here"));
    }

    /// A permit lasts as long again, counted from when that was asked.
    pub(in crate::simulator) fn renewed(&mut self, request: &Request, asked: u64) {
        self.each_holding(request, |holding, ttl| {
            if holding.until > asked {
                holding.until = holding.until.max(asked + ttl);
            }
        });
    }

    fn each_holding(&mut self, request: &Request, change: impl Fn(&mut Holding, u64)) {
        let setting = Arc::clone(&self.setting);
        let held = self.holdings.iter_mut().filter(|holding| holding.permit == request.permit);
        held.for_each(|holding| change(holding, setting.specs[holding.key].window_us));
    }

    /// A caller has its answer.
    pub(in crate::simulator) fn decided(
        &mut self,
        (node, task): (usize, TaskId),
        request: &Request,
        begun: Begun,
        decision: &Decision<'_>,
        now: u64,
    ) {
        self.note(now, || told(node, request, decision));
        self.note_age(request, now);
        self.figures.decided += 1;
        let setting = Arc::clone(&self.setting);
        let is_far = |key: usize| setting.reach(key) == Distributed::On;
        let (far, near) = (request.part(is_far), request.part(|key| !is_far(key)));
        let near_passes = begun.near.iter().all(Answer::is_allowed);
        let is_refused = request.act == Act::Take && !near_passes;
        let far = if is_refused { far.with(Act::Peek) } else { far };
        let heard = self.heard.remove(&task);
        let said = if far.wants.is_empty() {
            let said = heard.as_ref().and_then(|heard| heard.answers.as_ref());
            self.is_beside(&near, decision, said, now);
            Vec::new()
        } else if decision.is_degraded() {
            self.figures.degraded += 1;
            self.is_by_its_share(&far, decision, now);
            self.mirrors[node].alone(&setting, &far, now)
        } else {
            self.is_the_stores(request, decision, now);
            heard.as_ref().and_then(|heard| heard.answers.clone()).unwrap_or_default()
        };
        let mut here = begun.near;
        if request.act == Act::Take && near_passes && !said.iter().all(Answer::is_allowed) {
            here = self.gives_back(node, &near, now);
        }
        self.is_all(request, decision, (said, here), now);
        if request.act == Act::Take && decision.is_allowed() {
            let by = if decision.is_degraded() { By::Node(node) } else { By::Store };
            self.admit(&far, by, heard.map_or(now, |heard| heard.at));
        }
        self.is_rested(request, decision, now);
    }

    /// What was taken here before the store refused.
    fn gives_back(&mut self, node: usize, near: &Request, now: u64) -> Vec<Answer> {
        self.figures.given_back += u64::from(!near.wants.is_empty());
        let mirror = &mut self.mirrors[node];
        mirror.near(&near.with(Act::Refund), now);
        if near.permit.is_some() {
            mirror.near(&near.with(Act::Release), now);
        }
        mirror.near(&near.with(Act::Peek), now)
    }

    /// The answers are the right ones, each in its place.
    fn is_all(
        &mut self,
        request: &Request,
        decision: &Decision<'_>,
        (far, near): (Vec<Answer>, Vec<Answer>),
        now: u64,
    ) {
        let setting = Arc::clone(&self.setting);
        let (mut far, mut near) = (far.into_iter(), near.into_iter());
        let right: Vec<Option<Answer>> = request
            .wants
            .iter()
            .map(|want| match setting.reach(want.key) {
                Distributed::On => far.next(),
                _ => near.next(),
            })
            .collect();
        let seen = decision.statuses().iter().map(|status| Some(Answer::from(status)));
        let holds = Holds::from(seen.eq(right.iter().copied()));
        self.hold(now, holds, || format!("{request:?}: {decision:?} instead of {right:?}"));
    }

    /// The store answered, unless a limit refused that this node counts itself.
    fn is_the_stores(&mut self, request: &Request, decision: &Decision<'_>, now: u64) {
        let reach = |want: &Want| self.setting.reach(want.key);
        let mut decided = request.wants.iter().zip(decision.statuses());
        // Of equals the first.
        let deciding = decided.find(|(_, status)| decision.deciding() == Some(*status));
        let is_near = deciding.is_some_and(|(want, _)| reach(want) != Distributed::On);
        let right = match is_near && !decision.is_allowed() {
            true => Source::Local,
            false => Source::Store,
        };
        let holds = decision.source() == right && decision.loss().is_none();
        self.hold(now, Holds::from(holds), || format!("not marked as the store's: {decision:?}"));
    }

    fn is_by_its_share(&mut self, far: &Request, decision: &Decision<'_>, now: u64) {
        let loss = |key: usize| self.setting.keys[key].distribution.on_store_loss;
        let has = |wanted| far.wants.iter().any(|want| loss(want.key) == wanted);
        let right = [OnStoreLoss::Deny, OnStoreLoss::Local, OnStoreLoss::Allow];
        let right = right.into_iter().find(|wanted| has(*wanted));
        let holds = decision.source() == Source::Local && decision.loss() == right;
        self.hold(now, Holds::from(holds), || format!("marked wrongly: {decision:?}"));
    }

    /// What is not in the store does not depend on it, and what it says beside is what it said.
    fn is_beside(
        &mut self,
        near: &Request,
        decision: &Decision<'_>,
        said: Option<&Vec<Answer>>,
        now: u64,
    ) {
        let holds = decision.source() == Source::Local && !decision.is_degraded();
        self.hold(now, Holds::from(holds), || format!("not marked as local: {decision:?}"));
        let beside =
            decision.shadow_decision().map(|beside| beside.statuses().iter().map(Answer::from));
        let beside: Option<Vec<Answer>> = beside.map(Iterator::collect);
        self.figures.beside += u64::from(beside.is_some());
        self.hold(now, Holds::from(beside.as_ref() == said), || {
            format!("{near:?}: the store said {said:?}, and beside is {beside:?}")
        });
    }

    fn admit(&mut self, far: &Request, by: By, at: u64) {
        let setting = Arc::clone(&self.setting);
        for want in far.wants.iter().filter(|want| want.cost > 0) {
            self.admissions[want.key].push(Admission { at, cost: want.cost, by });
            let spec = &setting.specs[want.key];
            if spec.algorithm == Kind::Concurrency {
                let (key, permit, until) = (want.key, far.permit, at + spec.window_us);
                self.holdings.push(Holding { key, permit, cost: want.cost, from: at, until });
            }
        }
    }

    /// When all has come back, everyone has everything: in the store, and in each node without it.
    fn is_rested(&mut self, request: &Request, decision: &Decision<'_>, now: u64) {
        let is_lost = match self.stage {
            Stage::Hour => return,
            Stage::Rested => false,
            Stage::LostAgain => true,
        };
        let is_far = request.wants.iter().any(|it| self.setting.reach(it.key) == Distributed::On);
        let is_refused = decision.loss() == Some(OnStoreLoss::Deny);
        let is_right = decision.is_allowed() != is_refused;
        let holds = Holds::from(is_right && decision.is_degraded() == (is_far && is_lost));
        self.hold(now, holds, || format!("rested, {request:?} is told {decision:?}"));
    }
}

fn told(node: usize, request: &Request, decision: &Decision<'_>) -> String {
    let verdict = decision.verdict();
    let how = decision.loss().map_or("", OnStoreLoss::as_str);
    format!("node {node} tells {verdict:?} {how} for {request:?}")
}
