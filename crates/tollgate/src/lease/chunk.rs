//! One granted lease.

use std::time::Duration;

use super::epochs::{EpochStamp, Epochs};
use super::plan_lease::Amounts;
use super::time::LeaseTime;
use crate::plan::{Plan, Take};

/// One granted lease.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) left: Amounts,
    pub(super) granted: Amounts,
    pub(super) begun: LeaseTime,
    pub(super) length: Duration,
    pub(super) stamp: EpochStamp,
}

impl Chunk {
    pub(super) fn is_live(&self, now: LeaseTime, epochs: &Epochs) -> bool {
        now.is_within(self.begun, self.length) && epochs.is_current(&self.stamp)
    }

    pub(super) fn spend(&mut self, plan: &Plan<'_>) -> bool {
        let costs = || plan.takes().iter().map(Take::cost);
        let is_enough = self.is_enough_for(plan);
        if is_enough {
            self.left.iter_mut().zip(costs()).for_each(|(left, cost)| *left -= cost);
        }
        is_enough
    }

    pub(super) fn is_enough_for(&self, plan: &Plan<'_>) -> bool {
        self.left.iter().zip(plan.takes()).all(|(left, take)| *left >= take.cost())
    }

    pub(super) fn refund(&mut self, plan: &Plan<'_>) -> bool {
        let costs = || plan.takes().iter().map(Take::cost);
        let spent = self.left.iter().zip(&self.granted).map(|(left, granted)| granted - left);
        let is_spent = spent.zip(costs()).all(|(spent, cost)| spent >= cost);
        if is_spent {
            self.left.iter_mut().zip(costs()).for_each(|(left, cost)| *left += cost);
        }
        is_spent
    }
}
