//! Refusals that a node repeats without a call, while the demand for a leased plan exceeds its limits.
//!
//! The wait of such a refusal is often shorter than a round trip, because a large bucket refills a token in microseconds.
//! Without a pause, every request beyond the limit would be a call, at the time when calls are most expensive. Quota that
//! refills meanwhile is not lost: the next lease takes it.

use std::time::Duration;

use smallvec::SmallVec;

use super::epochs::{EpochStamp, Epochs};
use super::plan_lease::Amounts;
use super::time::LeaseTime;
use crate::algorithm::{Reply, Verdict};
use crate::decision::{Decision, Source, Status, Statuses};
use crate::plan::{Plan, Take};
use crate::time::Timestamp;

/// The time before a call to the store and the events until then, to note its refusal with
/// [`LeaseTable::note_refusal`](super::LeaseTable::note_refusal).
#[derive(Debug)]
pub struct CallEpoch {
    pub(super) begun: LeaseTime,
    pub(super) stamp: EpochStamp,
}

/// A refusal by the store, which the node repeats for a time.
#[derive(Debug)]
pub(super) struct Refusal {
    costs: Amounts,
    replies: SmallVec<[Reply; 2]>,
    epoch: CallEpoch,
    /// The first repetition. The reply may arrive later than `length` after the call began.
    first: Option<LeaseTime>,
    length: Duration,
}

impl Refusal {
    pub(super) fn new(
        costs: Amounts,
        replies: impl Iterator<Item = Reply>,
        epoch: CallEpoch,
        length: Duration,
    ) -> Self {
        Self { costs, replies: replies.collect(), epoch, first: None, length }
    }

    /// Returns the refusal of a plan that costs at least as much, if it is still repeated: for `length` from the first time
    /// on, and at most four times as long from the beginning of the call on.
    pub(super) fn decision<'a>(
        &mut self,
        plan: &Plan<'a>,
        (at, now): (Timestamp, LeaseTime),
        epochs: &Epochs,
    ) -> Option<Decision<'a>> {
        let costs = plan.takes().iter().map(Take::cost);
        let is_valid = now.is_within(self.epoch.begun, self.length * 4)
            && epochs.is_current(&self.epoch.stamp)
            && costs.zip(&self.costs).all(|(cost, refused)| cost >= *refused);
        let first = *self.first.get_or_insert(now);
        let is_valid = is_valid && now.is_within(first, self.length);
        is_valid.then(|| self.aged(plan, at, now.since(first)))
    }

    fn aged<'a>(&self, plan: &Plan<'a>, at: Timestamp, elapsed: Duration) -> Decision<'a> {
        let pause = self.length.saturating_sub(elapsed);
        let mut statuses = Statuses::new();
        for (take, reply) in plan.takes().iter().zip(&self.replies) {
            let verdict = match reply.verdict() {
                Verdict::Deny { retry_after } => {
                    Verdict::Deny { retry_after: pause.max(retry_after.saturating_sub(elapsed)) }
                }
                other => other,
            };
            let reset = reply.reset_after().saturating_sub(elapsed);
            let reply = Reply::new(verdict, reply.remaining(), reset);
            statuses.push(Status::new(take.key().limit(), take.mode(), reply));
        }
        Decision::new(at, statuses).from_source(Source::Cache)
    }
}
