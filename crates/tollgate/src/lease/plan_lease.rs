//! The leases of one plan: what the node may still spend, and when it needs more.

use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::demand::TakenAmounts;
use super::epochs::{EpochStamp, Epochs};
use super::stats::{Counters, add};
use super::time::LeaseTime;
use super::wanted::TakeGrant;
use crate::algorithm::{LeaseRule, Reply, Verdict};
use crate::decision::{Decision, Source, Status, Statuses};
use crate::limit::{LeaseSize, Limit};
use crate::plan::{Plan, Take};
use crate::time::Timestamp;

/// Amounts by take.
pub(super) type Amounts = SmallVec<[u64; 2]>;

/// Number of leases of one plan at a time: one to spend, and the next one.
const MAX_CHUNKS: usize = 2;

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
    chunks: SmallVec<[Chunk; MAX_CHUNKS]>,
    /// The replies to the last grant.
    replies: SmallVec<[Reply; 2]>,
    replied: LeaseTime,
    taken: TakenAmounts,
    last_used: LeaseTime,
    is_requested: bool,
    /// No request before the monotonic clock has passed this time since `last_request`.
    pause: Duration,
    last_request: LeaseTime,
}

/// One granted lease.
#[derive(Debug)]
struct Chunk {
    left: Amounts,
    granted: Amounts,
    begun: LeaseTime,
    length: Duration,
    stamp: EpochStamp,
}

/// What the lease of a plan can do for a request.
pub(super) enum Spend<'a> {
    /// The lease pays. The node should request more if `needs_more`.
    Paid { decision: Decision<'a>, needs_more: bool },
    /// The lease cannot pay, and the request should be sent as a request for a lease if `needs_more`.
    Unpaid { needs_more: bool },
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
            replies: SmallVec::new(),
            replied: now,
            taken: TakenAmounts::new(amounts, now.period(hold)),
            last_used: now,
            is_requested: false,
            pause: Duration::ZERO,
            last_request: now,
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
        state.last_used = now;
        state.taken.add(plan.takes().iter().map(Take::cost), now.period(self.hold));
        state.drop_ended(now, epochs, counters);
        let is_paid = state.chunks.iter_mut().any(|chunk| chunk.spend(plan));
        let needs_more = state.needs_more(self.hold, now);
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
        state.drop_ended(now, epochs, counters);
        let is_refunded = state.chunks.iter_mut().any(|chunk| chunk.refund(plan));
        if is_refunded {
            let amount = plan.takes().iter().map(Take::cost).sum();
            counters.spent.fetch_sub(amount, Ordering::Relaxed);
        }
        is_refunded.then(|| state.decision(plan, at, now))
    }

    /// Begins a request, and returns the amounts to request. Another one begins only after [`Self::finish_request`].
    pub(super) fn begin_request(&self, plan: &Plan<'_>, now: LeaseTime) -> Amounts {
        let mut state = self.state.lock();
        state.is_requested = true;
        state.last_request = now;
        let wanted = plan.takes().iter().zip(state.taken.recent());
        let amount = |(take, recent): (&Take<'_>, u64)| match take.key().limit().lease() {
            LeaseSize::Fixed(amount) => amount.get().into(),
            // A quarter more than last time, because demand varies.
            LeaseSize::Auto | LeaseSize::Off => recent.saturating_add(recent / 4),
        };
        wanted.map(amount).collect()
    }

    /// Ends a request. `grant` is what the store granted, less `costs`, which the request itself spends.
    pub(super) fn finish_request(
        &self,
        grant: Option<(&[TakeGrant], &[u64], EpochStamp)>,
        begun: LeaseTime,
        counters: &Counters,
    ) {
        let mut state = self.state.lock();
        state.is_requested = false;
        let Some((grant, costs, stamp)) = grant else {
            // Too little is left, or the store failed: decide by the store for a while.
            state.pause = self.hold / 4;
            add(&counters.not_granted, 1);
            return;
        };
        state.pause = Duration::ZERO;
        let granted: Amounts = grant.iter().map(|take| take.amount).collect();
        let left: Amounts =
            granted.iter().zip(costs).map(|(amount, cost)| amount.saturating_sub(*cost)).collect();
        add(&counters.grants, 1);
        add(&counters.granted, granted.iter().sum());
        add(&counters.spent, costs.iter().sum());
        let ends = self
            .takes
            .iter()
            .zip(grant)
            .map(|(leased, take)| window_left(&leased.limit, take.reply.reset_after()));
        let length = ends.flatten().min().map_or(self.hold, |left| left.min(self.hold));
        // The clock of the node may be a little slower than that of the store.
        let length = length - length / 1000;
        state.replies = grant.iter().map(|take| take.reply).collect();
        state.replied = begun;
        state.chunks.push(Chunk { left, granted, begun, length, stamp });
    }

    /// Drops leases that have ended. Returns whether the plan has a lease, and whether it was used within `idle`.
    pub(super) fn sweep(
        &self,
        (now, idle): (LeaseTime, Duration),
        epochs: &Epochs,
        counters: &Counters,
    ) -> (bool, bool) {
        let mut state = self.state.lock();
        state.drop_ended(now, epochs, counters);
        let is_used = state.is_requested || now.since(state.last_used) < idle;
        (!state.chunks.is_empty(), is_used)
    }
}

impl State {
    fn drop_ended(&mut self, now: LeaseTime, epochs: &Epochs, counters: &Counters) {
        self.chunks.retain(|chunk| {
            let is_live = chunk.is_live(now, epochs);
            if !is_live {
                add(&counters.dropped, chunk.left.iter().sum());
            }
            is_live && chunk.left.iter().any(|left| *left > 0)
        });
    }

    /// Returns whether to request a lease: half of the last one is spent, or most of its time is over.
    fn needs_more(&self, hold: Duration, now: LeaseTime) -> bool {
        let is_paused = now.since(self.last_request) < self.pause;
        if self.is_requested || is_paused || self.chunks.len() == MAX_CHUNKS {
            return false;
        }
        self.chunks.last().is_none_or(|chunk| {
            let is_half_spent =
                chunk.left.iter().zip(&chunk.granted).any(|(left, granted)| *left < granted / 2);
            is_half_spent || now.since(chunk.begun) > chunk.length.saturating_sub(hold / 4)
        })
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

impl Chunk {
    fn is_live(&self, now: LeaseTime, epochs: &Epochs) -> bool {
        now.is_within(self.begun, self.length) && epochs.is_current(&self.stamp)
    }

    fn spend(&mut self, plan: &Plan<'_>) -> bool {
        let costs = || plan.takes().iter().map(Take::cost);
        let is_enough = self.left.iter().zip(costs()).all(|(left, cost)| *left >= cost);
        if is_enough {
            self.left.iter_mut().zip(costs()).for_each(|(left, cost)| *left -= cost);
        }
        is_enough
    }

    fn refund(&mut self, plan: &Plan<'_>) -> bool {
        let costs = || plan.takes().iter().map(Take::cost);
        let spent = self.left.iter().zip(&self.granted).map(|(left, granted)| granted - left);
        let is_spent = spent.zip(costs()).all(|(spent, cost)| spent >= cost);
        if is_spent {
            self.left.iter_mut().zip(costs()).for_each(|(left, cost)| *left += cost);
        }
        is_spent
    }
}

/// Returns the time until the window of a take ends, in which it must be spent; `None` if it can be spent later. `reset`
/// is the reply after the take, so the window is in use.
fn window_left(limit: &Limit, reset: Duration) -> Option<Duration> {
    match limit.letter().lease_rule() {
        LeaseRule::Window => Some(reset),
        LeaseRule::FadingWindow => Some(reset.saturating_sub(limit.window())),
        LeaseRule::Never | LeaseRule::Refill | LeaseRule::Log => None,
    }
}
