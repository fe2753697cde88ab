//! What a node decides without the store: by its share of each limit, or as the limit says.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;

use super::FallbackStore;
use super::ledger::Ledger;
use super::spent::Spending;
use crate::algorithm::Reply;
use crate::clock::Clock;
use crate::decision::{Decision, Source, Verdict};
use crate::limit::Limit;
use crate::memory::MemoryStore;
use crate::plan::{Key, Mode, Plan, Take};
use crate::sharing::OnStoreLoss;
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

/// What came of it, since the store was lost.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) admitted: AtomicU64,
    pub(super) refused: AtomicU64,
}

/// This node's part of the limit of a take that it counts itself.
type Part = Option<(Arc<Limit>, NonZeroU32)>;

impl<S, C: Clock> FallbackStore<S, C> {
    /// Decides a plan without the store, and writes down what the store must be told of.
    pub(super) fn decide_alone<'a>(
        &self,
        act: Act,
        plan: &Plan<'a>,
        ledger: &mut Ledger,
    ) -> Decision<'a> {
        let loss = loss_of(plan);
        // What is refused takes nothing.
        let own = if act == Act::Take && loss == OnStoreLoss::Deny { Act::Peek } else { act };
        let (at, statuses) = self.statuses(own, plan);
        let decision = Decision::new(at, statuses).from_source(Source::Local).degraded(loss);
        self.note(act, plan, &decision, ledger);
        decision
    }

    fn statuses<'a>(&self, act: Act, plan: &Plan<'a>) -> (Timestamp, SmallVec<[Status<'a>; 2]>) {
        let counted = |take: &Take<'a>| loss(take) == OnStoreLoss::Local;
        let part = |take: &Take<'a>| counted(take).then(|| self.shares.of(take.key().limit()));
        let parts: SmallVec<[Part; 2]> = plan.takes().iter().map(part).collect();
        let takes = plan.takes().iter().zip(&parts);
        let own = takes.clone().filter_map(|(take, part)| {
            let (part, _) = part.as_ref()?;
            Some(take.of_key(Key::private(take.key().subject(), part)))
        });
        let own = Plan::of_distinct(own).held_by(plan.lease());
        let decided = act.on(&self.local, &own);
        let mut replies = decided.statuses().iter().map(|status| status.reply);
        let status = |(take, part): (&Take<'a>, &Part)| {
            let (limit, mode) = (take.key().limit(), take.mode());
            match part {
                Some((_, nodes)) => {
                    let reply = until_back(take, replies.next().unwrap_or(refusal()));
                    Status::of_share(limit, mode, reply, *nodes)
                }
                None => Status::known(limit, mode, uncounted(take)),
            }
        };
        (decided.at(), takes.map(status).collect())
    }

    fn note(&self, act: Act, plan: &Plan<'_>, decision: &Decision<'_>, ledger: &mut Ledger) {
        let at = decision.at();
        match act {
            Act::Take => {
                let is_allowed = decision.is_allowed();
                let tally = if is_allowed { &self.tally.admitted } else { &self.tally.refused };
                tally.fetch_add(1, Ordering::Relaxed);
                for take in plan.takes().iter().filter(|take| decision.took(take.mode())) {
                    let lease = plan.lease().filter(|_| take.holds_slots());
                    ledger.spend(&take.key(), Spending { at, cost: take.cost(), lease }, at);
                }
            }
            Act::Peek => {}
            Act::Refund => {
                for take in plan.takes() {
                    ledger.give_back(&take.key(), take.cost(), at);
                }
            }
            Act::Debit(age) => {
                for take in plan.takes() {
                    let spending = Spending { at: at - age, cost: take.cost(), lease: None };
                    ledger.spend(&take.key(), spending, at);
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

fn loss(take: &Take<'_>) -> OnStoreLoss {
    take.sharing().on_store_loss
}

/// In which way a plan is decided: by the strictest of its enforced takes.
fn loss_of(plan: &Plan<'_>) -> OnStoreLoss {
    let has = |wanted| {
        let enforced = |take: &&Take<'_>| take.mode() == Mode::Enforce || plan.is_watched_only();
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
    use super::*;
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
            store.decide_alone(Act::Peek, &plan, &mut store.ledger.lock()).verdict()
        });
        let later = Verdict::Deny { retry_after: RETRY };
        assert_eq!(verdicts, [Verdict::Allow, later, later, Verdict::Never]);
    }
}
