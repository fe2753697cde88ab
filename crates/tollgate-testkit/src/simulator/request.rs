//! One operation on several keys, and the oracles' answers to it.

use tollgate::{Key, Permit, PermitId, Plan, Take};

use super::scenario::Scenario;
use crate::answer::{Answer, Operation};
use crate::oracle::Oracle;
use crate::spec::LimitSpec;

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Take,
    Peek,
    Refund,
    Debit { age_us: u64 },
    Release,
    Renew,
}

/// Cost on one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyCost {
    /// Index of the key in the scenario.
    pub(super) key: usize,
    pub(super) cost: u64,
}

/// A plan with keys as indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) action: Action,
    pub(super) costs: Vec<KeyCost>,
    pub(super) permit: Option<u64>,
}

impl Request {
    /// Converts the plan of a call to the store. A probe has no costs.
    pub(super) fn from_plan(scenario: &Scenario, action: Action, plan: &Plan<'_>) -> Self {
        let cost =
            |take: &Take<'_>| Some(KeyCost { key: scenario.find(&take.key())?, cost: take.cost() });
        let permit = plan.permit().map(permit_number);
        Self { action, costs: plan.takes().iter().filter_map(cost).collect(), permit }
    }

    /// Converts the permit of a call to the store.
    pub(super) fn from_permit(scenario: &Scenario, action: Action, permit: &Permit) -> Self {
        let cost = |held: &tollgate::HeldKey| {
            let is_held = |key: &Key<'_>| {
                key.subject() == held.subject() && key.limit().identity() == held.identity()
            };
            let key = scenario.keys.iter().position(|key| is_held(&key.key()))?;
            Some(KeyCost { key, cost: 0 })
        };
        let costs = permit.held().iter().filter_map(cost).collect();
        Self { action, costs, permit: Some(permit_number(permit.id())) }
    }

    pub(super) fn plan<'s>(&self, scenario: &'s Scenario) -> Plan<'s> {
        let take = |cost: &KeyCost| {
            let key = &scenario.keys[cost.key];
            Take::new(key.key(), cost.cost).with_distribution(key.distribution)
        };
        let plan = Plan::new(self.costs.iter().map(take)).expect("keys are distinct");
        match self.permit.and_then(permit_id) {
            Some(permit) => plan.with_permit(permit),
            None => plan,
        }
    }

    /// Returns the request restricted to some keys.
    pub(super) fn filter_keys(&self, is_kept: impl Fn(usize) -> bool) -> Self {
        let costs = self.costs.iter().copied().filter(|cost| is_kept(cost.key)).collect();
        Self { costs, ..self.clone() }
    }

    /// Returns the request with costs of 0.
    pub(super) fn without_costs(&self) -> Self {
        let costs = self.costs.iter().map(|cost| KeyCost { cost: 0, ..*cost }).collect();
        Self { costs, ..self.clone() }
    }

    pub(super) fn with_action(&self, action: Action) -> Self {
        Self { action, ..self.clone() }
    }
}

pub(super) fn permit_id(number: u64) -> Option<PermitId> {
    PermitId::from_u128(u128::from(number))
}

fn permit_number(permit: PermitId) -> u64 {
    u64::try_from(permit.as_u128()).unwrap_or(u64::MAX)
}

/// One oracle per key.
#[derive(Debug, Clone)]
pub(super) struct Oracles(Vec<Oracle>);

impl Oracles {
    pub(super) fn new(keys: usize) -> Self {
        Self(vec![Oracle::new(); keys])
    }

    /// Drops the keys that equal unused ones, as a store may at any time.
    pub(super) fn drop_fresh(&mut self, specs: &[LimitSpec], now: u64) {
        for (oracle, spec) in self.0.iter_mut().zip(specs) {
            if oracle.clone().apply(spec, now, Operation::Peek { cost: 0 }).reset_after_us == 0 {
                *oracle = Oracle::new();
            }
        }
    }

    /// Returns the right answers of a store with these limits: all or nothing.
    pub(super) fn run(&mut self, specs: &[LimitSpec], request: &Request, now: u64) -> Vec<Answer> {
        let mut each = |operation: &dyn Fn(u64) -> Operation| -> Vec<Answer> {
            let answer = |cost: &KeyCost| {
                self.0[cost.key].apply(&specs[cost.key], now, operation(cost.cost))
            };
            request.costs.iter().map(answer).collect()
        };
        let permit = request.permit.unwrap_or(0);
        match request.action {
            Action::Peek => each(&|cost| Operation::Peek { cost }),
            Action::Refund => each(&|cost| Operation::Refund { cost }),
            Action::Debit { age_us } => each(&|cost| Operation::Debit { cost, age_us }),
            Action::Release => each(&|_| Operation::Release { permit }),
            Action::Renew => each(&|_| Operation::Renew { permit }),
            Action::Take => {
                let peeked = each(&|cost| Operation::Peek { cost });
                if !peeked.iter().all(Answer::is_allowed) {
                    return peeked;
                }
                match request.permit {
                    Some(permit) => each(&|cost| Operation::Hold { cost, permit }),
                    None => each(&|cost| Operation::Take { cost }),
                }
            }
        }
    }
}
