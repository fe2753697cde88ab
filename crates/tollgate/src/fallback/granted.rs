//! What a node keeps of reservations while the shared store is lost.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::costs::Costs;
use crate::decision::{Decision, Status};
use crate::plan::{Distributed, Distribution, Plan, Take};
use crate::reservation::{
    FinalCosts, Record, ReservationToken, ReservedTake, Settled, TakeOutcome, UnitOutcome,
};
use crate::store::{StoreError, StoreErrorKind};
use crate::time::Timestamp;
use crate::unit::Unit;

/// Maximum number of reservations of this node, and of kept settlements.
pub(super) const MAX_KEPT: usize = 100_000;

/// How often the shared store may reply that it does not know the reservation of a kept settlement. Each maintenance sends it, about once
/// a second, so these are two minutes, and an outage does not count.
pub(super) const MAX_UNKNOWN_REPLIES: u32 = 120;

/// A reservation that this node has granted.
#[derive(Debug, Clone)]
pub(super) struct NodeReservation {
    pub(super) record: Record,
    /// For how long each take counts.
    pub(super) counts_for: Vec<Duration>,
    pub(super) distributions: Vec<Distribution>,
    /// When the record ends.
    pub(super) until: Timestamp,
    /// Whether the shared store is receiving the record. Settlements then wait for it.
    pub(super) is_moving: bool,
}

/// A settlement that the shared store has not received.
#[derive(Debug, Clone)]
pub(super) struct KeptSettlement {
    pub(super) token: ReservationToken,
    pub(super) tenant: Option<Box<[u8]>>,
    pub(super) finals: FinalCosts,
    /// How often the shared store did not know the reservation: another node may not have sent it yet.
    pub(super) unknown_replies: u32,
}

/// The reservations of this node, and the settlements to replay.
#[derive(Debug, Default)]
pub(super) struct NodeReservations(pub(super) Mutex<Entries>);

#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) granted: HashMap<u128, NodeReservation>,
    pub(super) settlements: HashMap<u128, KeptSettlement>,
}

/// The attempt to settle a reservation of this node.
pub(super) enum Claim {
    /// It was open: the reservation as it was, and its final costs.
    Open(Box<NodeReservation>, Costs),
    Settled,
    /// The shared store is receiving it.
    Moving,
}

/// What a settlement changes: plans to refund and to debit.
pub(super) struct Changes<'r> {
    pub(super) refund: Plan<'r>,
    pub(super) debit: Plan<'r>,
    pub(super) outcomes: Vec<TakeOutcome>,
}

impl Changes<'_> {
    /// Records that nothing above the estimate was collected.
    pub(super) fn collect_nothing(&mut self, costs: &Costs, record: &Record) {
        for (outcome, take) in self.outcomes.iter_mut().zip(record.takes()) {
            outcome.uncollected = take.difference(costs).1;
        }
    }
}

impl NodeReservation {
    pub(super) fn new(
        record: Record,
        plan: &Plan<'_>,
        decision: &Decision<'_>,
        now: Timestamp,
    ) -> Self {
        Self {
            until: now + Record::retention(record.ttl(), plan.takes()),
            counts_for: decision.statuses().iter().map(Status::reset_after).collect(),
            distributions: plan.takes().iter().map(Take::distribution).collect(),
            is_moving: false,
            record,
        }
    }

    /// Whether the shared store counts every take.
    pub(super) fn is_shared(&self, max: Distributed) -> bool {
        let mut distributions = self.distributions.iter();
        distributions.all(|one| one.distributed.min(max) == Distributed::On)
    }

    /// Returns what changes when the final costs are known at `now`. A part of a take that no longer counts is not
    /// refunded.
    pub(super) fn changes(&self, costs: &Costs, now: Timestamp) -> Changes<'_> {
        let age = Duration::from_micros(
            now.as_micros().saturating_sub(self.record.taken_at().as_micros()),
        );
        let (mut refunds, mut debits, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
        let takes = self.record.takes().iter().zip(&self.counts_for).zip(&self.distributions);
        for ((take, counts_for), distribution) in takes {
            let (lower, higher) = take.difference(costs);
            let returned = if age < *counts_for { take.still_owed(lower, age) } else { 0 };
            outcomes.push(TakeOutcome { given_back: returned, uncollected: 0 });
            let change = |cost| Take::new(take.key(), cost).with_distribution(*distribution);
            refunds.extend((returned > 0).then(|| change(returned)));
            debits.extend((higher > 0).then(|| change(higher)));
        }
        Changes { refund: Plan::of_distinct(refunds), debit: Plan::of_distinct(debits), outcomes }
    }
}

impl Settled {
    /// Returns the result of a settlement that is kept until the store is back: the final amounts, as far as they are
    /// known without the record.
    pub(super) fn kept(finals: &FinalCosts) -> Self {
        let unit = |(unit, amount): (&Unit, u64)| UnitOutcome {
            unit: unit.clone(),
            charged: amount,
            refunded: 0,
            uncollected: 0,
        };
        let units = finals.named().into_iter().flat_map(Costs::iter).map(unit).collect();
        let mut settled = Self::new(units, Vec::new());
        settled.is_degraded = true;
        settled
    }
}

impl ReservedTake {
    /// Returns by how much the final amount is lower, or higher, than what was taken.
    fn difference(&self, costs: &Costs) -> (u64, u64) {
        if self.taken.is_none() || self.limit.algorithm().holds_slots() {
            return (0, 0);
        }
        let amount = costs.get(self.limit.unit()).saturating_mul(self.factor);
        (self.cost.saturating_sub(amount), amount.saturating_sub(self.cost))
    }

    /// Returns the part of an amount that a token bucket cannot have refilled within `age`.
    fn still_owed(&self, amount: u64, age: Duration) -> u64 {
        let Some(bucket) = self.limit.parameters().as_token_bucket() else { return amount };
        let (tokens, micros) = bucket.rate();
        let refilled = (u128::from(tokens) * age.as_micros()).div_ceil(u128::from(micros));
        amount.saturating_sub(u64::try_from(refilled).unwrap_or(u64::MAX))
    }
}

pub(super) fn too_many(what: &str) -> StoreError {
    let message = format!("this node keeps {MAX_KEPT} {what} until the store is back");
    StoreError::new(StoreErrorKind::Unavailable, message)
}
