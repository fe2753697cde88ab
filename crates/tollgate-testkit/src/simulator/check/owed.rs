//! What a node owes the store for a key: written apart from the library, with the oracle's arithmetic.

use crate::answer::Operation;
use crate::oracle::Oracle;
use crate::spec::{Kind, LimitSpec};

/// As many spendings are told apart at most.
const MOST_APART: usize = 64;

/// One thing that a node must tell the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tell {
    Debit { cost: u64, age: u64 },
    Hold { cost: u64, permit: u64 },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Spending {
    at: u64,
    cost: u64,
    permit: Option<u64>,
}

/// One key's debts.
#[derive(Debug, Clone)]
pub(super) enum Owed {
    /// Where only what is still used matters, and since when.
    Sum { used: Box<Oracle>, since: u64 },
    /// Where each spending matters by its age.
    Each(Vec<Spending>),
}

impl Owed {
    pub(super) fn new(spec: &LimitSpec) -> Self {
        match spec.algorithm {
            Kind::TokenBucket | Kind::FixedWindow | Kind::CalendarWindow => {
                Self::Sum { used: Box::default(), since: 0 }
            }
            _ => Self::Each(Vec::new()),
        }
    }

    pub(super) fn spend(
        &mut self,
        spec: &LimitSpec,
        now: u64,
        age: u64,
        cost: u64,
        permit: Option<u64>,
    ) {
        match self {
            Self::Sum { used, since } => {
                if used.apply(spec, now, Operation::Peek { cost: 0 }).count == 0 {
                    *since = now - age;
                }
                used.apply(spec, now, Operation::Debit { cost, age_us: age });
            }
            Self::Each(all) => {
                all.push(Spending { at: now - age, cost, permit });
                if all.len() > MOST_APART {
                    all.retain(|spending| matters(spec, spending, now));
                }
                if all.len() > MOST_APART && spec.algorithm != Kind::Concurrency {
                    *all = all.chunks(2).map(later).collect();
                }
            }
        }
    }

    pub(super) fn refund_receipt(&mut self, spec: &LimitSpec, now: u64, cost: u64) {
        match self {
            Self::Sum { used, .. } => {
                used.apply(spec, now, Operation::Refund { cost });
            }
            Self::Each(_) if spec.algorithm == Kind::Concurrency => {}
            Self::Each(all) => {
                let mut left = cost;
                while left > 0
                    && let Some(last) = all.pop()
                {
                    let kept = last.cost.saturating_sub(left);
                    left = left.saturating_sub(last.cost);
                    if kept > 0 {
                        all.push(Spending { cost: kept, ..last });
                    }
                }
            }
        }
    }

    /// Whether slots of a permit are owed that have not returned by themselves.
    pub(super) fn is_held(&self, spec: &LimitSpec, now: u64, permit: u64) -> bool {
        let Self::Each(all) = self else { return false };
        all.iter().any(|it| it.permit == Some(permit) && matters(spec, it, now))
    }

    pub(super) fn release(&mut self, permit: u64) {
        if let Self::Each(all) = self {
            all.retain(|spending| spending.permit != Some(permit));
        }
    }

    /// What has returned by itself cannot be held for longer.
    pub(super) fn renew(&mut self, spec: &LimitSpec, now: u64, permit: u64) {
        if let Self::Each(all) = self {
            let held = all.iter_mut().filter(|spending| spending.permit == Some(permit));
            for spending in held.filter(|spending| spending.at + spec.window_us > now) {
                spending.at = now;
            }
        }
    }

    /// What the store must be told now.
    pub(super) fn tells(&mut self, spec: &LimitSpec, now: u64) -> Vec<Tell> {
        match self {
            Self::Sum { used, since } => {
                let cost = used.apply(spec, now, Operation::Peek { cost: 0 }).count;
                let rolls = spec.algorithm == Kind::FixedWindow;
                let age = if rolls { now - *since } else { 0 };
                if cost > 0 { vec![Tell::Debit { cost, age }] } else { Vec::new() }
            }
            Self::Each(all) => {
                let matter = all.iter().filter(|spending| matters(spec, spending, now));
                matter.map(|spending| spending.tell(now)).collect()
            }
        }
    }
}

impl Spending {
    fn tell(&self, now: u64) -> Tell {
        match self.permit {
            Some(permit) => Tell::Hold { cost: self.cost, permit },
            None => Tell::Debit { cost: self.cost, age: now - self.at },
        }
    }
}

fn matters(spec: &LimitSpec, spending: &Spending, now: u64) -> bool {
    let windows = if spec.algorithm == Kind::SlidingCounter { 2 } else { 1 };
    spending.at + windows * spec.window_us > now
}

fn later(neighbours: &[Spending]) -> Spending {
    let at = neighbours.iter().map(|spending| spending.at).max().unwrap_or(0);
    Spending { at, cost: neighbours.iter().map(|spending| spending.cost).sum(), permit: None }
}
