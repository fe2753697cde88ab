//! Requests for leases.

use std::sync::Arc;

use super::epochs::EpochStamp;
use super::plan_lease::PlanLease;
use super::refusal::CallEpoch;
use super::stats::{Counters, add};
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

    /// Adds the grant of the store to the leases of the node. `None`: the call failed. Drop a request that was not sent.
    pub fn finish(mut self, reply: Option<&LeaseReply>) {
        if let Some(reply) = reply.filter(|reply| !reply.is_allowed()) {
            self.note_refusal(reply);
        }
        let Some(reply) = reply.filter(|reply| reply.is_granted()) else {
            add(&self.counters.not_granted, 1);
            return;
        };
        self.is_finished = true;
        let grant = (reply.takes(), &self.wanted, self.stamp.clone());
        self.lease.finish_request(grant, self.begun, &self.counters);
    }

    fn note_refusal(&self, reply: &LeaseReply) {
        let epoch = CallEpoch { begun: self.begun, stamp: self.stamp.clone() };
        let replies = reply.takes().iter().map(|take| take.reply);
        self.lease.note_refusal(self.wanted.costs().into(), replies, epoch);
    }
}

impl Drop for LeaseRequest {
    fn drop(&mut self) {
        if !self.is_finished {
            self.lease.abandon_request();
        }
    }
}
