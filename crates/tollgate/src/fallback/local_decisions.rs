//! What a node decides without the store: by its share of each limit, or as the limit says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;

use super::FallbackStore;
use super::outage_ledger::Ledger;
use super::share_cache::Part;
use super::spending::Spending;
use crate::algorithm::Reply;
use crate::clock::Clock;
use crate::decision::{Decision, Source, Verdict};
use crate::distribution::OnStoreLoss;
use crate::memory::MemoryStore;
use crate::plan::{Key, Mode, Plan, Take};
use crate::status::Status;
use crate::time::Timestamp;

/// How long those wait who are refused because the store is lost. Nobody knows when it will be back.
const RETRY: Duration = Duration::from_secs(1);

/// What is to be done with a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Take,
    Peek,
    Refund,
    Debit(Duration),
}

/// How many requests a node has decided alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LocalDecisions {
    /// How many passed.
    pub admitted: u64,
    /// How many were refused.
    pub refused: u64,
}

/// What came of it, since the store was lost.
#[derive(Debug, Default)]
pub(super) struct Tally {
    admitted: AtomicU64,
    refused: AtomicU64,
}

impl Tally {
    pub(super) fn get(&self) -> LocalDecisions {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LocalDecisions { admitted: read(&self.admitted), refused: read(&self.refused) }
    }

    /// The same, and from now on anew.
    pub(super) fn take(&self) -> LocalDecisions {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        LocalDecisions { admitted: take(&self.admitted), refused: take(&self.refused) }
    }
}

impl<S, C: Clock> FallbackStore<S, C> {
    /// Decides a plan without the store, and writes down what the store must be told of.
    pub(super) fn decide_locally<'a>(
        &self,
        act: Act,
        plan: &Plan<'a>,
        ledger: &mut Ledger,
    ) -> Decision<'a> {
        let loss = loss_of(plan);
        // What is refused takes nothing, and gives nothing back.
        let own = match act {
            Act::Take | Act::Refund if loss == OnStoreLoss::Deny => Act::Peek,
            act => act,
        };
        let parts: Parts =
            plan.takes().iter().map(|take| self.shares.of(take.key().limit())).collect();
        let (at, statuses) = self.statuses(own, plan, &parts);
        let decision = Decision::new(at, statuses).from_source(Source::Local).degraded(loss);
        self.note(act, plan, &parts, &decision, ledger);
        decision
    }

    fn statuses<'a>(
        &self,
        act: Act,
        plan: &Plan<'a>,
        parts: &[Part],
    ) -> (Timestamp, SmallVec<[Status<'a>; 2]>) {
        let takes = plan.takes().iter().zip(parts);
        let own = takes.clone().filter(|(take, _)| is_counted(take));
        let own = own.map(|(take, it)| take.of_key(Key::private(take.key().subject(), &it.part)));
        let own = Plan::of_distinct(own).held_by(plan.permit());
        let decided = act.on(&self.local, &own);
        let mut replies = decided.statuses().iter().map(|status| status.reply);
        let status = |(take, part): (&Take<'a>, &Part)| {
            let (limit, mode) = (take.key().limit(), take.mode());
            if is_counted(take) {
                let reply = until_back(take, replies.next().unwrap_or(refusal()));
                Status::of_share(limit, mode, reply, part.nodes)
            } else {
                Status::new_unclamped(limit, mode, uncounted(take))
            }
        };
        (decided.at(), takes.map(status).collect())
    }

    fn note(
        &self,
        act: Act,
        plan: &Plan<'_>,
        parts: &[Part],
        decision: &Decision<'_>,
        ledger: &mut Ledger,
    ) {
        let at = decision.at();
        let takes = plan.takes().iter().zip(parts);
        match act {
            Act::Take => {
                let is_allowed = decision.is_allowed();
                let tally = if is_allowed { &self.tally.admitted } else { &self.tally.refused };
                tally.fetch_add(1, Ordering::Relaxed);
                for (take, part) in takes.filter(|(take, _)| decision.took(take.mode())) {
                    let permit = plan.permit().filter(|_| take.holds_slots());
                    let spending = Spending { at, cost: take.cost(), permit };
                    ledger.spend(take.key().subject(), &part.whole, spending, at);
                }
            }
            Act::Peek => {}
            Act::Refund if decision.loss() == Some(OnStoreLoss::Deny) => {}
            Act::Refund => {
                for take in plan.takes() {
                    ledger.refund_receipt(&take.key(), take.cost(), at);
                }
            }
            Act::Debit(age) => {
                for (take, part) in takes {
                    let spending = Spending { at: at - age, cost: take.cost(), permit: None };
                    ledger.spend(take.key().subject(), &part.whole, spending, at);
                }
            }
        }
    }
}

impl Act {
    /// Does it in memory.
    pub(super) fn on<'a, C: Clock>(self, store: &MemoryStore<C>, plan: &Plan<'a>) -> Decision<'a> {
        match self {
            Self::Take => store.take(plan),
            Self::Peek => store.peek(plan),
            Self::Refund => store.refund(plan),
            Self::Debit(age) => store.debit(plan, age),
        }
    }
}

/// This node's part of the limit of each take.
type Parts = SmallVec<[Part; 2]>;

/// Whether this node counts it.
fn is_counted(take: &Take<'_>) -> bool {
    loss(take) == OnStoreLoss::Local
}

fn loss(take: &Take<'_>) -> OnStoreLoss {
    take.distribution().on_store_loss
}

/// In which way a plan is decided: by the strictest of its enforced takes.
fn loss_of(plan: &Plan<'_>) -> OnStoreLoss {
    let has = |wanted| {
        let enforced = |take: &&Take<'_>| take.mode() == Mode::Enforce || plan.is_shadow_only();
        plan.takes().iter().filter(enforced).any(|take| loss(take) == wanted)
    };
    if has(OnStoreLoss::Deny) {
        OnStoreLoss::Deny
    } else if has(OnStoreLoss::Local) {
        OnStoreLoss::Local
    } else {
        OnStoreLoss::Allow
    }
}

/// What is told of a limit that nobody counts meanwhile.
fn uncounted(take: &Take<'_>) -> Reply {
    match loss(take) {
        OnStoreLoss::Deny => refusal(),
        _ => Reply::new(Verdict::Allow, take.key().limit().capacity(), Duration::ZERO),
    }
}

/// What this node's share can never hold the whole limit can, when the store is back.
fn until_back(take: &Take<'_>, reply: Reply) -> Reply {
    if reply.verdict() == Verdict::Never && take.cost() <= take.key().limit().capacity() {
        return reply.with_verdict(Verdict::Deny { retry_after: RETRY });
    }
    reply
}

fn refusal() -> Reply {
    Reply::new(Verdict::Deny { retry_after: RETRY }, 0, Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::limit::Limit;
    use crate::quota::Quota;
    use crate::subject::Subject;

    #[test]
    fn what_only_the_whole_limit_can_hold_is_not_refused_for_good() {
        let three = NonZeroU32::new(3).unwrap();
        let store = FallbackStore::builder(MemoryStore::new()).nodes(three).build();
        let (limit, subject) =
            (Limit::sliding_window(Quota::per_minute(9)).unwrap(), Subject::of(["a"]));
        let verdicts = [3, 4, 9, 10].map(|cost| {
            let plan = Plan::of_distinct([Take::new(Key::new(&subject, &limit), cost)]);
            store.decide_locally(Act::Peek, &plan, &mut store.ledger.lock()).verdict()
        });
        let later = Verdict::Deny { retry_after: RETRY };
        assert_eq!(verdicts, [Verdict::Allow, later, later, Verdict::Never]);
    }
}
