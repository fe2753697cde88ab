//! Leases: an amount that a node spends later.

use super::{Model, apply_to};
use crate::answer::{Answer, Operation};
use crate::spec::LimitSpec;

/// A requested lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) cost: u64,
    pub(super) amount: u64,
    /// Time in microseconds in which the lease is spent.
    pub(super) hold: u64,
}

/// Leases at most a quarter of what is left, at least two and twice the cost; otherwise takes the cost.
pub(super) fn apply<M: Model>(model: &mut M, spec: &LimitSpec, now: u64, wanted: Wanted) -> Answer {
    let cost = wanted.cost;
    let before = apply_to(model, spec, now, Operation::Peek { cost });
    if !before.is_allowed() {
        return before;
    }
    let mut settled = model.clone();
    settled.settle(spec, now);
    let leasable = settled.leasable(spec, before.remaining, wanted.hold);
    let granted = wanted.amount.min(leasable / 4);
    if granted < 2 || granted < cost.saturating_mul(2) {
        return apply_to(model, spec, now, Operation::Take { cost });
    }
    settled.lease(spec, now, granted, wanted.hold);
    *model = settled;
    Answer { granted, ..apply_to(model, spec, now, Operation::Peek { cost: 0 }) }
}
