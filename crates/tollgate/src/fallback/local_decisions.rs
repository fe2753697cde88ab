//! Decisions without the shared store: by this node's share of each limit, or as `on_store_loss` requires.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;

use super::FallbackStore;
use super::admissions::Admission;
use super::outage_ledger::Ledger;
use super::share_cache::NodeShare;
use crate::algorithm::Reply;
use crate::clock::Clock;
use crate::decision::{Decision, Source, Verdict};
use crate::distribution::OnStoreLoss;
use crate::memory::MemoryStore;
use crate::plan::{Key, Mode, Plan, Take};
use crate::status::Status;
use crate::time::Timestamp;

/// `retry_after` of refusals that end with the outage, whose end is unknown.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Store operation on a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Take,
    Peek,
    Refund,
    Debit(Duration),
}

/// Numbers of requests that a node has decided without the shared store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LocalDecisions {
    /// Number of admitted requests.
    pub admitted: u64,
    /// Number of refused requests.
    pub refused: u64,
}

/// Counters behind [`LocalDecisions`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    admitted: AtomicU64,
    refused: AtomicU64,
}

impl Counters {
    pub(super) fn get(&self) -> LocalDecisions {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LocalDecisions { admitted: read(&self.admitted), refused: read(&self.refused) }
    }

    /// Returns the counts, and resets them.
    pub(super) fn take(&self) -> LocalDecisions {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        LocalDecisions { admitted: take(&self.admitted), refused: take(&self.refused) }
    }
}

impl<S, C: Clock> FallbackStore<S, C> {
    /// Decides a plan without the shared store, and records in the ledger what to replay there.
    pub(super) fn decide_locally<'a>(
        &self,
        operation: Operation,
        plan: &Plan<'a>,
        ledger: &mut Ledger,
    ) -> Decision<'a> {
        let loss = strictest_loss(plan);
        // A refused plan takes and refunds nothing.
        let local_operation = match operation {
            Operation::Take | Operation::Refund if loss == OnStoreLoss::Deny => Operation::Peek,
            operation => operation,
        };
        let shares: NodeShares =
            plan.takes().iter().map(|take| self.shares.get(take.key().limit())).collect();
        let (at, statuses) = self.statuses(local_operation, plan, &shares);
        let decision = Decision::new(at, statuses).from_source(Source::Local).degraded(loss);
        self.record(operation, plan, &shares, &decision, ledger);
        decision
    }

    fn statuses<'a>(
        &self,
        operation: Operation,
        plan: &Plan<'a>,
        shares: &[NodeShare],
    ) -> (Timestamp, SmallVec<[Status<'a>; 2]>) {
        let takes = plan.takes().iter().zip(shares);
        let counted = takes.clone().filter(|(take, _)| is_counted(take));
        let counted = counted
            .map(|(take, share)| take.of_key(Key::private(take.key().subject(), &share.share)));
        let local_plan = Plan::of_distinct(counted).held_by(plan.permit());
        let decision = operation.apply(&self.local, &local_plan);
        let mut replies = decision.statuses().iter().map(|status| status.reply);
        let status = |(take, share): (&Take<'a>, &NodeShare)| {
            let (limit, mode) = (take.key().limit(), take.mode());
            if is_counted(take) {
                let reply = never_to_deny(take, replies.next().unwrap_or(refusal()));
                Status::of_share(limit, mode, reply, share.nodes)
            } else {
                Status::new_unclamped(limit, mode, uncounted(take))
            }
        };
        (decision.at(), takes.map(status).collect())
    }

    fn record(
        &self,
        operation: Operation,
        plan: &Plan<'_>,
        shares: &[NodeShare],
        decision: &Decision<'_>,
        ledger: &mut Ledger,
    ) {
        let at = decision.at();
        let takes = plan.takes().iter().zip(shares);
        match operation {
            Operation::Take => {
                let is_allowed = decision.is_allowed();
                let counters = &self.counters;
                let counter = if is_allowed { &counters.admitted } else { &counters.refused };
                counter.fetch_add(1, Ordering::Relaxed);
                for (take, share) in takes.filter(|(take, _)| decision.took(take.mode())) {
                    let permit = plan.permit().filter(|_| take.holds_slots());
                    let admission = Admission { at, cost: take.cost(), permit };
                    ledger.admit(take.key().subject(), &share.limit, admission, at);
                }
            }
            Operation::Peek => {}
            Operation::Refund if decision.loss() == Some(OnStoreLoss::Deny) => {}
            Operation::Refund => {
                for take in plan.takes() {
                    ledger.refund(&take.key(), take.cost(), at);
                }
            }
            Operation::Debit(age) => {
                for (take, share) in takes {
                    let admission = Admission { at: at - age, cost: take.cost(), permit: None };
                    ledger.admit(take.key().subject(), &share.limit, admission, at);
                }
            }
        }
    }
}

impl Operation {
    /// Applies the operation to a memory store.
    pub(super) fn apply<'a, C: Clock>(
        self,
        store: &MemoryStore<C>,
        plan: &Plan<'a>,
    ) -> Decision<'a> {
        match self {
            Self::Take => store.take(plan),
            Self::Peek => store.peek(plan),
            Self::Refund => store.refund(plan),
            Self::Debit(age) => store.debit(plan, age),
        }
    }
}

/// This node's share of the limit of each take.
type NodeShares = SmallVec<[NodeShare; 2]>;

/// Returns true if this node counts its share of the take's limit.
fn is_counted(take: &Take<'_>) -> bool {
    on_store_loss(take) == OnStoreLoss::Local
}

fn on_store_loss(take: &Take<'_>) -> OnStoreLoss {
    take.distribution().on_store_loss
}

/// Returns the strictest `on_store_loss` of the plan's enforced takes.
fn strictest_loss(plan: &Plan<'_>) -> OnStoreLoss {
    let has = |wanted| {
        let enforced = |take: &&Take<'_>| take.mode() == Mode::Enforce || plan.is_shadow_only();
        plan.takes().iter().filter(enforced).any(|take| on_store_loss(take) == wanted)
    };
    if has(OnStoreLoss::Deny) {
        OnStoreLoss::Deny
    } else if has(OnStoreLoss::Local) {
        OnStoreLoss::Local
    } else {
        OnStoreLoss::Allow
    }
}

/// Returns the reply for a limit that is not counted during an outage.
fn uncounted(take: &Take<'_>) -> Reply {
    match on_store_loss(take) {
        OnStoreLoss::Deny => refusal(),
        _ => Reply::new(Verdict::Allow, take.key().limit().capacity(), Duration::ZERO),
    }
}

/// Turns `Never` into `Deny` for a cost that exceeds the share but not the limit: it fits after the outage.
fn never_to_deny(take: &Take<'_>, reply: Reply) -> Reply {
    if reply.verdict() == Verdict::Never && take.cost() <= take.key().limit().capacity() {
        return reply.with_verdict(Verdict::Deny { retry_after: RETRY_AFTER });
    }
    reply
}

fn refusal() -> Reply {
    Reply::new(Verdict::Deny { retry_after: RETRY_AFTER }, 0, Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::limit::Limit;
    use crate::quota::Quota;
    use crate::subject::Subject;

    #[test]
    fn cost_above_share_but_within_limit_is_not_never() {
        let three = NonZeroU32::new(3).unwrap();
        let store = FallbackStore::builder(MemoryStore::new()).nodes(three).build();
        let (limit, subject) =
            (Limit::sliding_window(Quota::per_minute(9)).unwrap(), Subject::of(["a"]));
        let verdicts = [3, 4, 9, 10].map(|cost| {
            let plan = Plan::of_distinct([Take::new(Key::new(&subject, &limit), cost)]);
            store.decide_locally(Operation::Peek, &plan, &mut store.ledger.lock()).verdict()
        });
        let deny = Verdict::Deny { retry_after: RETRY_AFTER };
        assert_eq!(verdicts, [Verdict::Allow, deny, deny, Verdict::Never]);
    }
}
