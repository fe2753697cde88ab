//! Decisions without the shared store: by this node's share of each limit, or as `on_store_loss` requires.

use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use smallvec::SmallVec;

use super::FallbackStore;
use super::admissions::Admission;
use super::event::StoreEvent;
use super::outage_ledger::Ledger;
use super::share_cache::NodeShare;
use crate::algorithm::{Reply, Verdict};
use crate::decision::{Decision, Source, Status};
use crate::plan::{Key, Mode, OnStoreLoss, Plan, Take};
use crate::store::{Store, StoreError};
use crate::time::Clock;

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

/// Why a plan is decided without the shared store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalReason {
    BreakerOpen,
    /// The call failed and had no effect.
    NotRun,
    /// The call failed and may have had an effect.
    MayHaveRun,
}

impl LocalReason {
    pub(super) const fn after(error: &StoreError) -> Self {
        if error.may_have_run() { Self::MayHaveRun } else { Self::NotRun }
    }
}

impl<S, C: Clock, L: Store> FallbackStore<S, C, L> {
    /// Decides a plan without the shared store, and records in the ledger what to replay there. Returns `None` if the
    /// reason is an open breaker and it has closed.
    ///
    /// The ledger's lock is not async, so it is never held across an await: a slow local store blocks neither other
    /// requests nor recovery. The reply of the local store is recorded in the poll that receives it, so a caller
    /// never gets an admission that is not recorded, even if its future is dropped or the breaker closes meanwhile.
    ///
    /// An immediate store replies in its first poll. That poll runs under the lock, together with the check of the
    /// breaker and the record. The breaker closes under the same lock, so the decision is recorded before the breaker
    /// closes, or is not made. With other stores the breaker may close during the decision. Its record then stays in
    /// the ledger until the next `maintain`, like that of a single failed call.
    ///
    /// A refund that may have run in the shared store is not credited here too: it returns nothing, and the reply
    /// shows the state of this node.
    pub(super) async fn decide_locally<'a>(
        &self,
        operation: Operation,
        plan: &Plan<'a>,
        reason: LocalReason,
    ) -> Option<Decision<'a>> {
        let without_costs = match (operation, reason) {
            (Operation::Refund, LocalReason::MayHaveRun) => Some(plan.clone().without_costs()),
            _ => None,
        };
        let plan = without_costs.as_ref().unwrap_or(plan);
        let loss = strictest_loss(plan);
        // A refused plan takes and refunds nothing.
        let local_operation = match operation {
            Operation::Take | Operation::Refund if loss == OnStoreLoss::Deny => Operation::Peek,
            operation => operation,
        };
        let shares: NodeShares =
            plan.takes().iter().map(|take| self.shares.get(take.key().limit())).collect();
        let local_plan = share_plan(plan, &shares);
        let mut call = pin!(self.call_local(local_operation, &local_plan));
        let mut must_check_breaker = reason == LocalReason::BreakerOpen;
        let (decision, reply) = poll_fn(|context| {
            let mut ledger = L::IS_IMMEDIATE.then(|| self.ledger.lock());
            if mem::take(&mut must_check_breaker) && self.breaker.is_closed() {
                return Poll::Ready(None);
            }
            let reply = ready!(call.as_mut().poll(context));
            let decision = self.degraded_decision(plan, &shares, loss, reply.as_ref().ok());
            let ledger = ledger.get_or_insert_with(|| self.ledger.lock());
            self.record(operation, plan, &shares, &decision, ledger);
            Poll::Ready(Some((decision, reply)))
        })
        .await?;
        // Not under the lock: the listener is foreign code.
        let _ = self.report_local(reply);
        Some(decision)
    }

    /// Applies an operation to the local store.
    pub(super) async fn call_local<'a>(
        &self,
        operation: Operation,
        plan: &Plan<'a>,
    ) -> Result<Decision<'a>, StoreError> {
        if plan.takes().is_empty() {
            return Ok(Decision::new(self.clock.now(), []));
        }
        operation.apply(&self.local, plan).await
    }

    /// Decides the takes that only the local store counts, from its reply. If it failed, `on_store_loss` decides.
    pub(super) fn local_decision<'a>(
        &self,
        plan: &Plan<'a>,
        reply: Result<Decision<'a>, StoreError>,
    ) -> Decision<'a> {
        self.report_local(reply).unwrap_or_else(|_| {
            let status = |take: &Take<'a>| {
                Status::new_unclamped(take.key().limit(), take.mode(), uncounted(take))
            };
            let statuses = plan.takes().iter().map(status);
            let loss = without_local_store(strictest_loss(plan));
            Decision::new(self.clock.now(), statuses).from_source(Source::Local).degraded(loss)
        })
    }

    /// Notifies the listener if a call to the local store failed.
    pub(super) fn report_local<T>(&self, reply: Result<T, StoreError>) -> Result<T, StoreError> {
        reply.inspect_err(|error| self.listener.notify(StoreEvent::LocalFailed(error)))
    }

    /// Builds the decision of a plan from the local store's reply; `None` if the local store failed.
    fn degraded_decision<'a>(
        &self,
        plan: &Plan<'a>,
        shares: &[NodeShare],
        loss: OnStoreLoss,
        reply: Option<&Decision<'_>>,
    ) -> Decision<'a> {
        let replies = reply.into_iter().flat_map(Decision::statuses);
        let mut replies = replies.map(Status::reply);
        let status = |(take, share): (&Take<'a>, &NodeShare)| {
            let (limit, mode) = (take.key().limit(), take.mode());
            if is_counted(take) {
                let reply = never_to_deny(take, replies.next().unwrap_or(refusal()));
                Status::of_share(limit, mode, reply, share.nodes)
            } else {
                Status::new_unclamped(limit, mode, uncounted(take))
            }
        };
        let statuses = plan.takes().iter().zip(shares).map(status);
        let at = reply.map_or_else(|| self.clock.now(), Decision::at);
        let loss = if reply.is_some() { loss } else { without_local_store(loss) };
        Decision::new(at, statuses).from_source(Source::Local).degraded(loss)
    }

    fn record(
        &self,
        operation: Operation,
        plan: &Plan<'_>,
        shares: &[NodeShare],
        decision: &Decision<'_>,
        ledger: &mut Ledger,
    ) {
        // Not the time of the decision: the local store may have another clock than the replay.
        let now = self.clock.now();
        let takes = plan.takes().iter().zip(shares);
        match operation {
            Operation::Take => {
                let is_allowed = decision.is_allowed();
                let counters = &self.counters;
                let counter = if is_allowed { &counters.admitted } else { &counters.refused };
                counter.fetch_add(1, Ordering::Relaxed);
                for (take, share) in takes.filter(|(take, _)| decision.took(take.mode())) {
                    let permit = plan.permit().filter(|_| take.holds_slots());
                    let admission = Admission { at: now, cost: take.cost(), permit };
                    ledger.admit(take.key().subject(), &share.limit, admission, now);
                }
            }
            Operation::Peek => {}
            Operation::Refund if decision.loss() == Some(OnStoreLoss::Deny) => {}
            Operation::Refund => {
                for take in plan.takes() {
                    ledger.refund(&take.key(), take.cost(), now);
                }
            }
            Operation::Debit(age) => {
                for (take, share) in takes {
                    let admission = Admission { at: now - age, cost: take.cost(), permit: None };
                    ledger.admit(take.key().subject(), &share.limit, admission, now);
                }
            }
        }
    }
}

impl Operation {
    pub(super) async fn apply<'a>(
        self,
        store: &impl Store,
        plan: &Plan<'a>,
    ) -> Result<Decision<'a>, StoreError> {
        match self {
            Self::Take => store.take(plan).await,
            Self::Peek => store.peek(plan).await,
            Self::Refund => store.refund(plan).await,
            Self::Debit(age) => store.debit(plan, age).await,
        }
    }
}

/// Returns the plan for the local store: the counted takes, with this node's shares as their limits.
fn share_plan<'s>(plan: &'s Plan<'_>, shares: &'s [NodeShare]) -> Plan<'s> {
    let counted = plan.takes().iter().zip(shares).filter(|(take, _)| is_counted(take));
    let takes =
        counted.map(|(take, share)| take.of_key(Key::private(take.key().subject(), &share.share)));
    Plan::of_distinct(takes).held_by(plan.permit())
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
    let is_enforced = |take: &&Take<'_>| take.mode() == Mode::Enforce || plan.is_shadow_only();
    strictest(plan.takes().iter().filter(is_enforced).map(on_store_loss))
        .unwrap_or(OnStoreLoss::Allow)
}

pub(super) fn strictest(losses: impl Iterator<Item = OnStoreLoss>) -> Option<OnStoreLoss> {
    losses.max_by_key(|loss| match loss {
        OnStoreLoss::Allow => 0,
        OnStoreLoss::Local => 1,
        OnStoreLoss::Deny => 2,
    })
}

/// Returns how a limit is decided if the local store fails too: `local` becomes `deny`.
fn without_local_store(loss: OnStoreLoss) -> OnStoreLoss {
    if loss == OnStoreLoss::Local { OnStoreLoss::Deny } else { loss }
}

/// Returns the reply for a limit that no available store counts.
fn uncounted(take: &Take<'_>) -> Reply {
    match on_store_loss(take) {
        OnStoreLoss::Allow => {
            Reply::new(Verdict::Allow, take.key().limit().capacity(), Duration::ZERO)
        }
        OnStoreLoss::Local | OnStoreLoss::Deny => refusal(),
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

    use tollgate_testkit::runtime::block_on;

    use super::*;
    use crate::limit::Limit;
    use crate::memory::MemoryStore;
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
            let decision = store.decide_locally(Operation::Peek, &plan, LocalReason::NotRun);
            block_on(decision).unwrap().verdict()
        });
        let deny = Verdict::Deny { retry_after: RETRY_AFTER };
        assert_eq!(verdicts, [Verdict::Allow, deny, deny, Verdict::Never]);
    }
}
