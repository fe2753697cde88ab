//! What is asked of several keys at once, and what oracles make of it.

use tollgate::{Key, Permit, PermitId, Plan, Take};

use super::setting::Setting;
use crate::answer::{Answer, Operation};
use crate::oracle::Oracle;
use crate::spec::LimitSpec;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Take,
    Peek,
    Refund,
    Debit { age_us: u64 },
    Release,
    Renew,
}

/// How much of which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Want {
    pub(super) key: usize,
    pub(super) cost: u64,
}

/// A plan by numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) act: Act,
    pub(super) wants: Vec<Want>,
    pub(super) permit: Option<u64>,
}

impl Request {
    /// What a node asks the store by this plan; of the probe nothing.
    pub(super) fn of(setting: &Setting, act: Act, plan: &Plan<'_>) -> Self {
        let want =
            |take: &Take<'_>| Some(Want { key: setting.find(&take.key())?, cost: take.cost() });
        let permit = plan.permit().map(number_of);
        Self { act, wants: plan.takes().iter().filter_map(want).collect(), permit }
    }

    /// What a node asks the store about a permit.
    pub(super) fn about(setting: &Setting, act: Act, permit: &Permit) -> Self {
        let held = |held: &tollgate::HeldKey| {
            let is_it = |key: &Key<'_>| {
                key.subject() == held.subject() && key.limit().identity() == held.identity()
            };
            let key = setting.keys.iter().position(|key| is_it(&key.key()))?;
            Some(Want { key, cost: 0 })
        };
        let wants = permit.held().iter().filter_map(held).collect();
        Self { act, wants, permit: Some(number_of(permit.id())) }
    }

    pub(super) fn plan<'s>(&self, setting: &'s Setting) -> Plan<'s> {
        let take = |want: &Want| {
            let key = &setting.keys[want.key];
            Take::new(key.key(), want.cost).with_distribution(key.distribution)
        };
        let plan = Plan::new(self.wants.iter().map(take)).expect("each key once");
        match self.permit.and_then(permit_id) {
            Some(permit) => plan.with_permit(permit),
            None => plan,
        }
    }

    /// The same for those keys only.
    pub(super) fn part(&self, is_in: impl Fn(usize) -> bool) -> Self {
        let wants = self.wants.iter().copied().filter(|want| is_in(want.key)).collect();
        Self { wants, ..self.clone() }
    }

    pub(super) fn with(&self, act: Act) -> Self {
        Self { act, ..self.clone() }
    }
}

pub(super) fn permit_id(number: u64) -> Option<PermitId> {
    PermitId::from_u128(u128::from(number))
}

fn number_of(permit: PermitId) -> u64 {
    u64::try_from(permit.as_u128()).unwrap_or(u64::MAX)
}

/// One oracle a key.
#[derive(Debug, Clone)]
pub(super) struct Oracles(Vec<Oracle>);

impl Oracles {
    pub(super) fn new(keys: usize) -> Self {
        Self(vec![Oracle::new(); keys])
    }

    /// What a store must answer whose limits are these: all or nothing.
    pub(super) fn run(&mut self, specs: &[LimitSpec], request: &Request, now: u64) -> Vec<Answer> {
        let mut each = |ask: &dyn Fn(u64) -> Operation| -> Vec<Answer> {
            let one = |want: &Want| self.0[want.key].apply(&specs[want.key], now, ask(want.cost));
            request.wants.iter().map(one).collect()
        };
        let permit = request.permit.unwrap_or(0);
        match request.act {
            Act::Peek => each(&|cost| Operation::Peek { cost }),
            Act::Refund => each(&|cost| Operation::Refund { cost }),
            Act::Debit { age_us } => each(&|cost| Operation::Debit { cost, age_us }),
            Act::Release => each(&|_| Operation::Release { permit }),
            Act::Renew => each(&|_| Operation::Renew { permit }),
            Act::Take => {
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
