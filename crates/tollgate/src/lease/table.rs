//! The table of leases of a node.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::demand::DemandSketch;
use super::epochs::Epochs;
use super::plan_lease::{PlanLease, Spend};
use super::refusal::CallEpoch;
use super::request::LeaseRequest;
use super::sizing::MIN_DECISIONS;
use super::stats::{Counters, LeaseStats};
use super::time::LeaseTime;
use super::wanted::WantedLease;
use crate::algorithm::Reply;
use crate::decision::{Decision, Status};
use crate::plan::{Key, Mode, Plan, Take};
use crate::sync::Mutex;
use crate::time::Timestamp;

const SHARDS: usize = 16;

/// A plan without a decision for this long is forgotten.
const IDLE: Duration = Duration::from_secs(5);

/// Minimum time between two searches of a full shard for idle plans.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);

/// The leases of one store on one node. See the [module](super).
#[derive(Debug)]
pub struct LeaseTable {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    epochs: Epochs,
    counters: Arc<Counters>,
    max_per_shard: usize,
}

#[derive(Debug, Default)]
struct Shard {
    leases: HashTable<Arc<PlanLease>>,
    demand: DemandSketch,
    /// The last search for idle plans.
    swept: Option<LeaseTime>,
}

/// How a request is decided.
#[derive(Debug)]
pub enum LeaseOutcome<'a> {
    /// The plan is not leased: the store decides it.
    NotLeased,
    /// From a lease. If there is a request, the node needs a further lease and sends the request in the background.
    Decided(Decision<'a>, Option<LeaseRequest>),
    /// Refused without a call: the plan is leased, and the store has just refused it.
    Refused(Decision<'a>),
    /// By the store, with a request for a lease in place of the take.
    Request(LeaseRequest),
}

impl LeaseTable {
    /// Creates a table for at most about `max` leased plans. It leases nothing until [`enable`](Self::enable) is called.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::default(),
            epochs: Epochs::new(),
            counters: Arc::default(),
            max_per_shard: max.div_ceil(SHARDS),
        }
    }

    /// Begins to lease: from now on, the node receives the events that end leases.
    pub fn enable(&self) {
        self.epochs.set_receiving(true);
    }

    /// Ends all leases and grants no more: the node may miss events.
    pub fn disable(&self) {
        self.epochs.set_receiving(false);
    }

    /// Ends all leases, also those that are being requested.
    pub fn end_all(&self) {
        self.epochs.end_all();
    }

    /// Ends the leases of a subject, also those that are being requested.
    pub fn end_subject(&self, subject: &str) {
        self.epochs.end_subject(self.hash_subject(subject));
    }

    /// Spends a lease of the plan, or returns what else to do. `at` is the estimated time of the store.
    pub fn spend<'a>(&self, plan: &Plan<'a>, at: Timestamp, now: LeaseTime) -> LeaseOutcome<'a> {
        let Some(hold) = hold_of(plan).filter(|_| self.epochs.is_receiving()) else {
            return LeaseOutcome::NotLeased;
        };
        let hash = self.hash(plan);
        let mut shard = self.shard(hash).lock();
        let Some(lease) = shard.leases.find(hash, |lease| lease.matches(plan)) else {
            let decisions = shard.demand.record(hash, hold, now);
            if decisions < MIN_DECISIONS || !self.has_capacity(&mut shard, now) {
                return LeaseOutcome::NotLeased;
            }
            let lease = Arc::new(PlanLease::new(plan, hash, hold, decisions, now));
            shard.leases.insert_unique(hash, Arc::clone(&lease), |lease| lease.hash);
            drop(shard);
            return LeaseOutcome::Request(self.request(lease, plan, now, IsBackground::No));
        };
        match lease.spend(plan, (at, now), &self.epochs, &self.counters) {
            Spend::Paid { decision, needs_more: false } => LeaseOutcome::Decided(decision, None),
            Spend::Unpaid { needs_more: false } => LeaseOutcome::NotLeased,
            Spend::Refused(decision) => LeaseOutcome::Refused(decision),
            Spend::Paid { decision, needs_more: true } => {
                let lease = Arc::clone(lease);
                let request = self.request(lease, plan, now, IsBackground::Yes);
                LeaseOutcome::Decided(decision, Some(request))
            }
            Spend::Unpaid { needs_more: true } => {
                let lease = Arc::clone(lease);
                LeaseOutcome::Request(self.request(lease, plan, now, IsBackground::No))
            }
        }
    }

    /// Returns the epoch of a call to the store for a plan that is not leased now.
    #[must_use]
    pub fn epoch(&self, plan: &Plan<'_>, now: LeaseTime) -> CallEpoch {
        CallEpoch {
            begun: now,
            stamp: self.epochs.stamp(plan, |subject| self.hash_subject(subject)),
        }
    }

    /// Notes that the store has refused a plan, in a call that began at this epoch. If the plan is leased, the node repeats
    /// the refusal for a quarter of the hold.
    pub fn note_refusal(&self, plan: &Plan<'_>, decision: &Decision<'_>, epoch: CallEpoch) {
        let hash = self.hash(plan);
        let shard = self.shard(hash).lock();
        let Some(lease) = shard.leases.find(hash, |lease| lease.matches(plan)) else { return };
        let costs = plan.takes().iter().map(Take::cost).collect();
        let reply = |status: &Status<'_>| {
            Reply::new(status.verdict(), status.remaining(), status.reset_after())
        };
        lease.note_refusal(costs, decision.statuses().iter().map(reply), epoch);
    }

    /// Refunds the costs of a plan to a lease that paid them. `None` if there is none; then the store refunds.
    pub fn refund<'a>(
        &self,
        plan: &Plan<'a>,
        at: Timestamp,
        now: LeaseTime,
    ) -> Option<Decision<'a>> {
        hold_of(plan)?;
        let hash = self.hash(plan);
        let shard = self.shard(hash).lock();
        let lease = shard.leases.find(hash, |lease| lease.matches(plan))?;
        lease.refund(plan, (at, now), &self.epochs, &self.counters)
    }

    /// Returns the figures of all leases, and drops those that have ended.
    #[must_use]
    pub fn stats(&self, now: LeaseTime) -> LeaseStats {
        let held = self.shards.iter().map(|shard| self.sweep(&mut shard.lock(), now)).sum();
        self.counters.stats(held)
    }

    /// Returns how much of a key this node has leased and not spent. Searches all leases, so it is for reports only.
    #[must_use]
    pub fn leased(&self, key: &Key<'_>, now: LeaseTime) -> u64 {
        let of_shard = |shard: &Mutex<Shard>| -> u64 {
            shard.lock().leases.iter().map(|lease| lease.left_of(key, now, &self.epochs)).sum()
        };
        self.shards.iter().map(of_shard).sum()
    }

    fn request(
        &self,
        lease: Arc<PlanLease>,
        plan: &Plan<'_>,
        begun: LeaseTime,
        is_background: IsBackground,
    ) -> LeaseRequest {
        let stamp = self.epochs.stamp(plan, |subject| self.hash_subject(subject));
        let (amounts, hold) = lease.begin_request(plan, begun);
        let cost = |take: &Take<'_>| match is_background {
            IsBackground::Yes => 0,
            IsBackground::No => take.cost(),
        };
        let wanted = WantedLease::new(plan.takes().iter().map(cost).zip(amounts), hold);
        LeaseRequest::new((lease, Arc::clone(&self.counters)), wanted, begun, stamp)
    }

    /// Returns whether there is space for another plan, after forgetting idle ones. Not every decision about the plans
    /// that have no space may search all others.
    fn has_capacity(&self, shard: &mut Shard, now: LeaseTime) -> bool {
        let is_due = shard.swept.is_none_or(|swept| now.since(swept) >= SWEEP_INTERVAL);
        if shard.leases.len() >= self.max_per_shard && is_due {
            self.sweep(shard, now);
        }
        shard.leases.len() < self.max_per_shard
    }

    /// Drops ended leases and forgets idle plans. Returns the number of plans with a lease.
    fn sweep(&self, shard: &mut Shard, now: LeaseTime) -> u64 {
        let mut held = 0;
        shard.swept = Some(now);
        shard.leases.retain(|lease| {
            let (has_lease, is_used) = lease.sweep((now, IDLE), &self.epochs, &self.counters);
            held += u64::from(has_lease);
            has_lease || is_used
        });
        held
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        let [first, ..] = &self.shards;
        self.shards.get(usize::try_from(hash % SHARDS as u64).unwrap_or(0)).unwrap_or(first)
    }

    /// Hashes subjects, rules and names of limits, without costs.
    fn hash(&self, plan: &Plan<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        for take in plan.takes() {
            hasher.write(take.key().subject().as_bytes());
            hasher.write(take.key().limit().rule().as_bytes());
            hasher.write(take.key().limit().name().as_bytes());
        }
        hasher.finish()
    }

    fn hash_subject(&self, subject: &str) -> u64 {
        self.hasher.hash_one(subject)
    }
}

/// Whether a request is sent while the node still has a lease, so that no caller waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsBackground {
    Yes,
    No,
}

/// Returns the time of a lease of all takes; `None` if the plan cannot be leased.
#[inline]
fn hold_of(plan: &Plan<'_>) -> Option<Duration> {
    let mut hold: Option<Duration> = None;
    for take in plan.takes() {
        let of_take = take.key().limit().lease_hold()?;
        if take.mode() != Mode::Enforce || take.cost() == 0 {
            return None;
        }
        hold = Some(hold.map_or(of_take, |hold| hold.min(of_take)));
    }
    hold.filter(|_| plan.permit().is_none())
}
