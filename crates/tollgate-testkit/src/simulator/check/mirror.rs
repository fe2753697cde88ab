//! One node as it should be: what it counts itself, what it owes, whether it asks the store.

use std::collections::{HashMap, VecDeque};

use tollgate::OnStoreLoss;

use super::owed::{Owed, Tell};
use crate::answer::{Answer, VerdictKind};
use crate::simulator::clockwork::TaskId;
use crate::simulator::request::{Act, Oracles, Request, Want};
use crate::simulator::setting::{SECOND, Setting, share};
use crate::spec::{Kind, LimitSpec};

/// What a node does, decided by oracles.
#[derive(Debug)]
pub(super) struct Mirror {
    /// What it counts: shares of limits, and whole ones that are not in the store.
    here: Oracles,
    counted: Vec<LimitSpec>,
    pub(super) owed: Vec<Owed>,
    /// Whether it may owe anything.
    pub(super) has_spent: bool,
    /// What the store is being told of, and by whom.
    pub(super) telling: HashMap<usize, (TaskId, VecDeque<Tell>)>,
    pub(super) breaker: Breaker,
    /// Since when it divides limits among how many.
    pub(super) known: Vec<(u64, u32)>,
    /// Since when the store answers it.
    pub(super) well_since: Option<u64>,
    /// When it last began to look after the store, and whether anything has gone wrong or been spent since.
    pub(super) attends: Attends,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attends {
    Calmly,
    Disturbed,
}

/// Who knows of a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::simulator) enum Held {
    Here,
    Elsewhere,
}

/// Whether the store is asked.
#[derive(Debug)]
pub(super) struct Breaker {
    pub(super) is_closed: bool,
    pub(super) failures: u32,
    pub(super) changes: u64,
    pub(super) probed_at: Option<u64>,
    /// How often it may probe sooner: who stood still for long does at once what was due meanwhile, and its
    /// first caller and its timer both try the store.
    pub(super) spare_probes: u32,
    pub(super) probe_answered_at: Option<u64>,
}

impl Mirror {
    pub(super) fn new(setting: &Setting, nodes: u32, now: u64) -> Self {
        let breaker = Breaker {
            is_closed: true,
            failures: 0,
            changes: 0,
            probed_at: None,
            spare_probes: 0,
            probe_answered_at: None,
        };
        let mut mirror = Self {
            here: Oracles::new(setting.keys.len()),
            counted: Vec::new(),
            owed: setting.specs.iter().map(Owed::new).collect(),
            has_spent: false,
            telling: HashMap::new(),
            breaker,
            known: Vec::new(),
            well_since: Some(now),
            attends: Attends::Calmly,
        };
        mirror.learn(setting, nodes, now);
        mirror
    }

    pub(super) fn learn(&mut self, setting: &Setting, nodes: u32, now: u64) {
        self.known.push((now, nodes));
        let part = |(key, spec)| match setting.reach(key) {
            tollgate::Distributed::On => share(spec, nodes),
            _ => spec.clone(),
        };
        self.counted = setting.specs.iter().enumerate().map(part).collect();
    }

    /// What it counts itself whatever the store says.
    pub(super) fn near(&mut self, request: &Request, now: u64) -> Vec<Answer> {
        self.here.run(&self.counted, request, now)
    }

    /// What it decides without the store, and owes it from then on.
    pub(super) fn alone(&mut self, setting: &Setting, request: &Request, now: u64) -> Vec<Answer> {
        let loss = |key: usize| setting.keys[key].distribution.on_store_loss;
        let has = |wanted| request.wants.iter().any(|want| loss(want.key) == wanted);
        let act = match request.act {
            Act::Take | Act::Refund if has(OnStoreLoss::Deny) => Act::Peek,
            act => act,
        };
        let own = request.part(|key| loss(key) == OnStoreLoss::Local).with(act);
        let mut own = self.here.run(&self.counted, &own, now).into_iter();
        let capacity = |want: &Want| setting.specs[want.key].capacity();
        let told = |want: &Want| match loss(want.key) {
            OnStoreLoss::Allow => passes(capacity(want)),
            OnStoreLoss::Deny => refused(capacity(want)),
            _ => until_back(want, capacity(want), own.next().expect("one answer each")),
        };
        let answers: Vec<Answer> = request.wants.iter().map(told).collect();
        if act != Act::Take || answers.iter().all(Answer::is_allowed) {
            self.note(setting, &request.clone().with(act), now);
        }
        answers
    }

    fn note(&mut self, setting: &Setting, request: &Request, now: u64) {
        (self.attends, self.has_spent) = (Attends::Disturbed, true);
        for want in request.wants.iter().filter(|want| want.cost > 0) {
            let (spec, owed) = (&setting.specs[want.key], &mut self.owed[want.key]);
            match request.act {
                Act::Take => {
                    let permit = request.permit.filter(|_| spec.algorithm == Kind::Concurrency);
                    owed.spend(spec, now, 0, want.cost, permit);
                }
                Act::Debit { age_us } => owed.spend(spec, now, age_us, want.cost, None),
                Act::Refund => owed.refund_receipt(spec, now, want.cost),
                Act::Peek | Act::Release | Act::Renew => {}
            }
        }
    }

    /// Gives a permit back or renews it, and tells whether the node holds it without the store.
    pub(super) fn of_permit(&mut self, setting: &Setting, request: &Request, now: u64) -> Held {
        let permit = request.permit.unwrap_or(0);
        self.here.run(&self.counted, request, now);
        let mut held = Held::Elsewhere;
        for want in &request.wants {
            if self.owed[want.key].is_held(&setting.specs[want.key], now, permit) {
                held = Held::Here;
            }
            match request.act {
                Act::Release => self.owed[want.key].release(permit),
                _ => self.owed[want.key].renew(&setting.specs[want.key], now, permit),
            }
        }
        held
    }

    /// The most that its shares of a key allowed at any time in `from..=to`, and how often they changed.
    pub(super) fn share(&self, spec: &LimitSpec, from: u64, to: u64) -> (LimitSpec, u64) {
        let later = self.known.iter().filter(|(since, _)| *since > from && *since <= to);
        let before = self.known.iter().rev().find(|(since, _)| *since <= from);
        let changes = later.clone().count() as u64;
        let fewest = later.chain(before).map(|(_, nodes)| *nodes).min().unwrap_or(u32::MAX);
        (share(spec, fewest), changes)
    }
}

/// What only the whole limit can hold may pass when the store is back.
fn until_back(want: &Want, capacity: u64, answer: Answer) -> Answer {
    if answer.verdict == VerdictKind::Never && want.cost <= capacity {
        return Answer { verdict: VerdictKind::Deny, retry_after_us: Some(SECOND), ..answer };
    }
    answer
}

fn passes(capacity: u64) -> Answer {
    Answer {
        verdict: VerdictKind::Allow,
        retry_after_us: None,
        count: 0,
        remaining: capacity,
        reset_after_us: 0,
    }
}

fn refused(capacity: u64) -> Answer {
    Answer {
        verdict: VerdictKind::Deny,
        retry_after_us: Some(SECOND),
        count: capacity,
        remaining: 0,
        reset_after_us: 0,
    }
}
