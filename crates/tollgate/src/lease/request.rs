//! Requests for leases, and what a store grants.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::epochs::EpochStamp;
use super::plan_lease::{Amounts, PlanLease};
use super::stats::Counters;
use super::time::LeaseTime;
use crate::algorithm::Reply;

/// What a store granted for the takes of a plan, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The grants by take.
    pub takes: SmallVec<[TakeGrant; 2]>,
}

/// What a store granted for one take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeGrant {
    /// The amount that the node may spend.
    pub amount: u64,
    /// The reply after the store debited it.
    pub reply: Reply,
}

/// A request for a lease, which the caller sends to the store. The table makes no other request for the same plan until
/// this one is [finished](Self::finish) or dropped.
#[derive(Debug)]
pub struct LeaseRequest {
    lease: Arc<PlanLease>,
    counters: Arc<Counters>,
    amounts: Amounts,
    costs: Amounts,
    hold: Duration,
    begun: LeaseTime,
    stamp: EpochStamp,
    is_finished: bool,
}

impl LeaseRequest {
    pub(super) fn new(
        (lease, counters): (Arc<PlanLease>, Arc<Counters>),
        (amounts, costs): (Amounts, Amounts),
        (hold, begun): (Duration, LeaseTime),
        stamp: EpochStamp,
    ) -> Self {
        Self { lease, counters, amounts, costs, hold, begun, stamp, is_finished: false }
    }

    /// The amounts to request, by take.
    #[must_use]
    pub fn amounts(&self) -> &[u64] {
        &self.amounts
    }

    /// The costs that the store takes even if it grants no lease, by take. They are 0 if the node requests more while
    /// it still has a lease.
    #[must_use]
    pub fn costs(&self) -> &[u64] {
        &self.costs
    }

    /// The time in which the node will spend the lease, from before the store receives the request.
    #[must_use]
    pub const fn hold(&self) -> Duration {
        self.hold
    }

    /// Adds what the store granted to the leases of the node. `None`: it granted nothing, or failed.
    pub fn finish(mut self, grant: Option<Grant>) {
        self.is_finished = true;
        let grant = grant.map(|grant| (grant, self.costs.clone(), self.stamp.clone()));
        self.lease.finish_request(grant, self.begun, &self.counters);
    }
}

impl Drop for LeaseRequest {
    fn drop(&mut self) {
        if !self.is_finished {
            self.lease.finish_request(None, self.begun, &self.counters);
        }
    }
}
