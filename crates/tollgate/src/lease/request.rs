//! Requests for leases.

use std::sync::Arc;

use super::epochs::EpochStamp;
use super::plan_lease::PlanLease;
use super::stats::Counters;
use super::time::LeaseTime;
use super::wanted::{LeaseReply, WantedLease};

/// A request for a lease, which the caller sends to the store. The table makes no other request for the same plan until
/// this one is [finished](Self::finish) or dropped.
#[derive(Debug)]
pub struct LeaseRequest {
    lease: Arc<PlanLease>,
    counters: Arc<Counters>,
    wanted: WantedLease,
    begun: LeaseTime,
    stamp: EpochStamp,
    is_finished: bool,
}

impl LeaseRequest {
    pub(super) fn new(
        (lease, counters): (Arc<PlanLease>, Arc<Counters>),
        wanted: WantedLease,
        begun: LeaseTime,
        stamp: EpochStamp,
    ) -> Self {
        Self { lease, counters, wanted, begun, stamp, is_finished: false }
    }

    /// The amounts to request from the store.
    #[must_use]
    pub const fn wanted(&self) -> &WantedLease {
        &self.wanted
    }

    /// Adds what the store granted to the leases of the node. `None`: the store failed, or cannot lease the plan.
    pub fn finish(mut self, reply: Option<&LeaseReply>) {
        self.is_finished = true;
        let granted = reply.filter(|reply| reply.is_granted());
        let grant = granted.map(|reply| (reply.takes(), self.wanted.costs(), self.stamp.clone()));
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
