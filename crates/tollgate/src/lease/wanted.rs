//! The lease that a node wants, and the reply of a store.

use std::time::Duration;

use smallvec::SmallVec;

use super::plan_lease::Amounts;
use crate::algorithm::Reply;
use crate::decision::{Decision, Status};
use crate::plan::{Mode, Plan};
use crate::time::{MAX_EXACT, Timestamp};

/// A lease that a node wants for the takes of a plan, in order. Amounts are at most 2^53.
///
/// ```
/// use std::time::Duration;
/// use tollgate::lease::WantedLease;
/// use tollgate::{Key, LeaseSize, Limit, MemoryStore, Plan, Quota, Subject, Take};
///
/// let limit = Limit::fixed_window(Quota::per_minute(100))?.with_lease(LeaseSize::Auto);
/// let subject = Subject::of(["user:1"]);
/// let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)])?;
///
/// let wanted = WantedLease::new([(1, 50)], Duration::from_secs(1));
/// let reply = MemoryStore::new().lease(&plan, &wanted).ok_or("not leasable")?;
/// assert_eq!(reply.takes()[0].amount, 25, "a quarter of what is left");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedLease {
    costs: Amounts,
    amounts: Amounts,
    hold: Duration,
}

impl WantedLease {
    /// Creates the request for a lease from `(cost, amount)` by take. The node spends the amounts within `hold`, from
    /// before the store receives the request.
    pub fn new(takes: impl IntoIterator<Item = (u64, u64)>, hold: Duration) -> Self {
        let (costs, amounts) =
            takes.into_iter().map(|(cost, amount)| (cost, amount.min(MAX_EXACT))).unzip();
        Self { costs, amounts, hold }
    }

    /// The costs that the store takes even if it grants no lease, by take. They are 0 if the node requests more while
    /// it still has a lease.
    #[must_use]
    pub fn costs(&self) -> &[u64] {
        &self.costs
    }

    /// The wanted amounts, which include the costs, by take.
    #[must_use]
    pub fn amounts(&self) -> &[u64] {
        &self.amounts
    }

    /// The time in which the node will spend the lease.
    #[must_use]
    pub const fn hold(&self) -> Duration {
        self.hold
    }

    /// Returns whether the limits of the plan can be leased for this time: all of them are leased, all takes are
    /// enforced, and no take holds slots.
    #[must_use]
    pub fn fits(&self, plan: &Plan<'_>) -> bool {
        let takes = plan.takes();
        !takes.is_empty()
            && takes.len() == self.costs.len()
            && plan.permit().is_none()
            && takes.iter().all(|take| {
                let hold = take.key().limit().lease_hold();
                take.mode() == Mode::Enforce && hold.is_some_and(|hold| self.hold <= hold)
            })
    }
}

/// What a store granted for one take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeGrant {
    /// The amount that the node may spend, which includes the cost of the request; 0 without a lease.
    pub amount: u64,
    /// The reply after the store debited the amount, or the cost.
    pub reply: Reply,
}

/// The reply of a store to a [`WantedLease`]: all takes are leased, or the costs were taken, or the plan is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseReply {
    at: Timestamp,
    takes: SmallVec<[TakeGrant; 2]>,
}

impl LeaseReply {
    /// Creates the reply of a store at a time of its clock.
    pub fn new(at: Timestamp, takes: impl IntoIterator<Item = TakeGrant>) -> Self {
        Self { at, takes: takes.into_iter().collect() }
    }

    /// The grants by take.
    #[must_use]
    pub fn takes(&self) -> &[TakeGrant] {
        &self.takes
    }

    /// Returns whether the store granted a lease.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        !self.takes.is_empty() && self.takes.iter().all(|take| take.amount > 0)
    }

    /// Returns whether no take was refused.
    pub(super) fn is_allowed(&self) -> bool {
        self.takes.iter().all(|take| take.reply.is_allowed())
    }

    /// Returns the decision about the plan of the request. What is left in the lease remains for this node.
    #[must_use]
    pub fn decision<'a>(&self, plan: &Plan<'a>, wanted: &WantedLease) -> Decision<'a> {
        let costs = wanted.costs.iter().zip(&self.takes);
        let statuses = plan.takes().iter().zip(costs).map(|(take, (cost, grant))| {
            let (limit, reply) = (take.key().limit(), grant.reply);
            let left = grant.amount.saturating_sub(*cost);
            let remaining = reply.remaining().saturating_add(left).min(limit.capacity());
            let reply = Reply::new(reply.verdict(), remaining, reply.reset_after());
            Status::new(limit, take.mode(), reply)
        });
        Decision::new(self.at, statuses)
    }
}
