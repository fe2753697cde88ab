//! The leases of one plan: what the node may still spend, and when it needs more.

use std::time::Duration;

use smallvec::SmallVec;

use super::chunk::Chunk;
use super::demand::TakenAmounts;
use super::epochs::{EpochStamp, Epochs};
use super::length::spendable_for;
use super::refusal::{CallEpoch, Refusal};
use super::sizing::{LeasePart, MIN_DECISIONS, NextHold, is_worth_requesting};
use super::stats::{Counters, add};
use super::time::LeaseTime;
use super::wanted::{TakeGrant, WantedLease};
use crate::algorithm::{Reply, Verdict};
use crate::decision::{Decision, Source, Status, Statuses};
use crate::limit::{LeaseSize, Limit};
use crate::plan::{Key, Plan, Take};
use crate::sync::Mutex;
use crate::time::Timestamp;

/// Amounts by take.
pub(super) type Amounts = SmallVec<[u64; 2]>;

/// Number of leases of one plan that can pay a request: one to spend, and the next one.
const MAX_USABLE: usize = 2;

/// Number of leases of one plan at a time, also those with too little left for a request.
const MAX_CHUNKS: usize = 8;

/// The leases of one plan, whatever its costs.
#[derive(Debug)]
pub(super) struct PlanLease {
    pub(super) hash: u64,
    hold: Duration,
    takes: Box<[LeasedTake]>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct LeasedTake {
    subject: Box<str>,
    limit: Limit,
}

#[derive(Debug)]
struct State {
    chunks: SmallVec<[Chunk; MAX_USABLE]>,
    part: LeasePart,
    next_hold: NextHold,
    /// The replies to the last grant.
    replies: SmallVec<[Reply; 2]>,
    replied: LeaseTime,
    taken: TakenAmounts,
    /// The latest time of any decision. No lease began later.
    last_used: LeaseTime,
    is_requested: bool,
    /// No request before the monotonic clock has passed this time since `last_request`.
    pause: Duration,
    last_request: LeaseTime,
    refusal: Option<Refusal>,
}

/// What the lease of a plan can do for a request.
pub(super) enum Spend<'a> {
    /// The lease pays. The node should request more if `needs_more`.
    Paid { decision: Decision<'a>, needs_more: bool },
    /// The lease cannot pay, and the request should be sent as a request for a lease if `needs_more`.
    Unpaid { needs_more: bool },
    /// The lease cannot pay, and the store has just refused the plan.
    Refused(Decision<'a>),
}

impl PlanLease {
    /// Creates the lease of a plan that made `decisions` like this one in this period.
    pub(super) fn new(
        plan: &Plan<'_>,
        hash: u64,
        hold: Duration,
        decisions: u64,
        now: LeaseTime,
    ) -> Self {
        let take = |take: &Take<'_>| LeasedTake {
            subject: take.key().subject().into(),
            limit: take.key().limit().clone(),
        };
        let amounts = plan.takes().iter().map(|take| take.cost().saturating_mul(decisions));
        let state = State {
            chunks: SmallVec::new(),
            part: if plan.takes().iter().all(is_fixed) {
                LeasePart::largest()
            } else {
                LeasePart::new()
            },
            next_hold: NextHold::first_of(hold),
            replies: SmallVec::new(),
            replied: now,
            taken: TakenAmounts::new(amounts, now.period(hold)),
            last_used: now,
            // The caller begins the first request.
            is_requested: true,
            pause: Duration::ZERO,
            last_request: now,
            refusal: None,
        };
        let takes = plan.takes().iter().map(take).collect();
        Self { hash, hold, takes, state: Mutex::new(state) }
    }

    /// Returns whether the plan has the same keys and limits. Costs may differ.
    pub(super) fn matches(&self, plan: &Plan<'_>) -> bool {
        self.takes.len() == plan.takes().len()
            && self.takes.iter().zip(plan.takes()).all(|(leased, take)| {
                *leased.subject == *take.key().subject() && leased.limit == *take.key().limit()
            })
    }

    /// Spends the costs of a plan, all or nothing, from the lease that ends first. `at` is the estimated store time.
    pub(super) fn spend<'a>(
        &self,
        plan: &Plan<'a>,
        (at, now): (Timestamp, LeaseTime),
        epochs: &Epochs,
        counters: &Counters,
    ) -> Spend<'a> {
        let mut state = self.state.lock();
        let now = now.latest(state.last_used);
        state.last_used = now;
        state.taken.add(plan.takes().iter().map(Take::cost), now.period(self.hold));
        state.drop_ended(now, epochs, counters);
        let is_paid = state.chunks.iter_mut().any(|chunk| chunk.spend(plan));
        let refusal = state.refusal.as_mut().filter(|_| !is_paid);
        let refused = refusal.and_then(|refusal| refusal.decision(plan, (at, now), epochs));
        if let Some(decision) = refused {
            return Spend::Refused(decision);
        }
        let needs_more = state.needs_more(plan, now);
        if !is_paid {
            return Spend::Unpaid { needs_more };
        }
        add(&counters.decisions, 1);
        add(&counters.spent, plan.takes().iter().map(Take::cost).sum());
        Spend::Paid { decision: state.decision(plan, at, now), needs_more }
    }

    /// Returns costs to a lease that paid at least that much; `None` if there is none, and then nothing changes.
    pub(super) fn refund<'a>(
        &self,
        plan: &Plan<'a>,
        (at, now): (Timestamp, LeaseTime),
        epochs: &Epochs,
        counters: &Counters,
    ) -> Option<Decision<'a>> {
        let mut state = self.state.lock();
        let now = now.latest(state.last_used);
        state.drop_ended(now, epochs, counters);
        let is_refunded = state.chunks.iter_mut().any(|chunk| chunk.refund(plan));
        if is_refunded {
            let amount = plan.takes().iter().map(Take::cost).sum();
            add(&counters.refunded, amount);
        }
        is_refunded.then(|| state.decision(plan, at, now))
    }

    /// Begins a request, and returns the amounts to request and the time to spend them. Another one begins only after
    /// [`Self::finish_request`].
    pub(super) fn begin_request(&self, plan: &Plan<'_>, now: LeaseTime) -> (Amounts, Duration) {
        let mut state = self.state.lock();
        state.is_requested = true;
        state.last_request = now;
        (state.wanted(plan), state.next_hold.get())
    }

    /// Ends a request that was not granted: the store decides for a while.
    pub(super) fn abandon_request(&self) {
        let mut state = self.state.lock();
        state.is_requested = false;
        state.pause = self.hold / 4;
    }

    /// Repeats a refusal of the store for a while, if the demand is worth a lease.
    pub(super) fn note_refusal(
        &self,
        costs: Amounts,
        replies: impl Iterator<Item = Reply>,
        epoch: CallEpoch,
    ) {
        let mut state = self.state.lock();
        let is_busy = state
            .taken
            .recent()
            .zip(&costs)
            .all(|(recent, cost)| recent >= cost.saturating_mul(MIN_DECISIONS));
        if is_busy {
            state.refusal = Some(Refusal::new(costs, replies, epoch, self.hold / 4));
        }
    }

    /// Ends a request that was granted. The request itself spends the costs in `wanted` of the grant.
    pub(super) fn finish_request(
        &self,
        (grant, wanted, stamp): (&[TakeGrant], &WantedLease, EpochStamp),
        begun: LeaseTime,
        counters: &Counters,
    ) {
        let mut state = self.state.lock();
        state.is_requested = false;
        state.pause = Duration::ZERO;
        let costs = wanted.costs();
        let granted: Amounts = grant.iter().map(|take| take.amount).collect();
        let left: Amounts =
            granted.iter().zip(costs).map(|(amount, cost)| amount.saturating_sub(*cost)).collect();
        add(&counters.grants, 1);
        add(&counters.granted, granted.iter().sum());
        add(&counters.spent, costs.iter().sum());
        let takes = self.takes.iter().zip(grant);
        let takes = takes.map(|(leased, take)| (&leased.limit, take.reply.reset_after()));
        let length = spendable_for(wanted.hold(), takes);
        state.replies = grant.iter().map(|take| take.reply).collect();
        state.replied = begun;
        state.chunks.push(Chunk { left, granted, begun, length, stamp });
    }

    /// Returns how much of a key is leased and not spent.
    pub(super) fn left_of(&self, key: &Key<'_>, now: LeaseTime, epochs: &Epochs) -> u64 {
        let is_same =
            |take: &LeasedTake| *take.subject == *key.subject() && take.limit == *key.limit();
        let Some(index) = self.takes.iter().position(is_same) else { return 0 };
        let state = self.state.lock();
        let live = state.chunks.iter().filter(|chunk| chunk.is_live(now, epochs));
        live.filter_map(|chunk| chunk.left.get(index)).sum()
    }

    /// Drops leases that have ended. Returns whether the plan has a lease, and whether it was used within `idle`.
    pub(super) fn sweep(
        &self,
        (now, idle): (LeaseTime, Duration),
        epochs: &Epochs,
        counters: &Counters,
    ) -> (bool, bool) {
        let mut state = self.state.lock();
        let now = now.latest(state.last_used);
        state.drop_ended(now, epochs, counters);
        let is_used = state.is_requested || now.since(state.last_used) < idle;
        (!state.chunks.is_empty(), is_used)
    }
}

impl State {
    fn drop_ended(&mut self, now: LeaseTime, epochs: &Epochs, counters: &Counters) {
        self.chunks.retain(|chunk| {
            let left = chunk.left.iter().sum();
            if left == 0 {
                self.part.spent();
                return false;
            }
            let is_live = chunk.is_live(now, epochs);
            if !is_live {
                add(&counters.dropped, left);
                if self.next_hold.is_full() {
                    self.part.ended(left, chunk.granted.iter().sum());
                } else {
                    self.next_hold.lengthen();
                }
            }
            is_live
        });
    }

    /// Returns whether to request a lease: little of the last one is left, and the next one is worth a call.
    fn needs_more(&self, plan: &Plan<'_>, now: LeaseTime) -> bool {
        let is_paused = now.since(self.last_request) < self.pause;
        if self.is_requested || is_paused || self.chunks.len() >= MAX_CHUNKS {
            return false;
        }
        let usable = self.chunks.iter().filter(|chunk| chunk.is_enough_for(plan)).count();
        let is_almost_spent = |chunk: &Chunk| {
            chunk.left.iter().zip(&chunk.granted).any(|(left, granted)| *left <= granted / 4)
        };
        usable < MAX_USABLE
            && self.chunks.last().is_none_or(is_almost_spent)
            && is_worth_requesting(plan, &self.wanted(plan))
    }

    /// Returns the amounts of the next lease.
    fn wanted(&self, plan: &Plan<'_>) -> Amounts {
        let amount = |(take, recent): (&Take<'_>, u64)| match take.key().limit().lease() {
            LeaseSize::Fixed(_) if recent < take.cost().saturating_mul(MIN_DECISIONS) => 0,
            LeaseSize::Fixed(max) => self.part.of_fixed(max.get().into()),
            LeaseSize::Auto | LeaseSize::Off => self.part.of(recent),
        };
        plan.takes().iter().zip(self.taken.recent()).map(amount).collect()
    }

    /// Returns the decision of a spent plan: what the store had left at the last grant and what is left in the leases.
    fn decision<'a>(&self, plan: &Plan<'a>, at: Timestamp, now: LeaseTime) -> Decision<'a> {
        let elapsed = now.since(self.replied);
        let mut statuses = Statuses::new();
        for (index, (take, reply)) in plan.takes().iter().zip(&self.replies).enumerate() {
            let left = |chunk: &Chunk| chunk.left.get(index).copied().unwrap_or(0);
            let leased: u64 = self.chunks.iter().map(left).sum();
            let limit = take.key().limit();
            let remaining = reply.remaining().saturating_add(leased).min(limit.capacity());
            let reset = reply.reset_after().saturating_sub(elapsed);
            statuses.push(Status::new(
                limit,
                take.mode(),
                Reply::new(Verdict::Allow, remaining, reset),
            ));
        }
        Decision::new(at, statuses).from_source(Source::Lease)
    }
}

fn is_fixed(take: &Take<'_>) -> bool {
    matches!(take.key().limit().lease(), LeaseSize::Fixed(_))
}
