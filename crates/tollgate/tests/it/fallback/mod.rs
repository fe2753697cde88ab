//! The fallback store: decisions, permits and recovery around a shared store that fails.

mod breaker;
mod kept_debits;
mod local_store;
mod mixed_plans;
mod node_shares;
mod overload;
mod permits;
mod recovery;
mod refunds;
mod reservation_fleets;
mod reservations;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{
    Decision, Distribution, FallbackStore, Key, Limit, ManualClock, MemoryStore, OnStoreLoss, Plan,
    Quota, Store, Subject, Take, Timestamp,
};
use tollgate_testkit::conformance::Fixture;
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_testkit::runtime::block_on;

type Shared = Arc<FaultyStore<MemoryStore<ManualClock>>>;

/// Nodes with one shared store and one clock.
struct Fleet {
    clock: ManualClock,
    shared: Shared,
    nodes: Vec<FallbackStore<Shared, ManualClock>>,
}

impl Fleet {
    fn of(nodes: u32) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
        let memory = MemoryStore::builder().clock(clock.clone()).build();
        let shared = Arc::new(FaultyStore::new(memory));
        let all = NonZeroU32::new(nodes).unwrap();
        let node = |_| {
            let builder = FallbackStore::builder(Arc::clone(&shared)).nodes(all);
            builder.clock(clock.clone()).build()
        };
        Self { nodes: (0..nodes).map(node).collect(), clock, shared }
    }

    fn lose(&self) {
        self.shared.set(StoreFault::Unreachable);
    }

    /// Lets the store reply again, and every node probe it.
    fn restore(&self) {
        self.shared.set(StoreFault::None);
        self.nodes.iter().for_each(|node| block_on(node.maintain()));
    }

    fn wait(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Takes `times` times on one node, and returns the number of admitted takes.
    fn admitted(&self, node: usize, limit: &Limit, times: usize) -> usize {
        let subject = Subject::of(["k"]);
        let plan = one(&subject, limit);
        (0..times).filter(|_| take(&self.nodes[node], &plan).is_allowed()).count()
    }

    /// Returns the count of the key in the shared store.
    fn counted(&self, limit: &Limit) -> u64 {
        self.shared.store().stats(&Key::new(&Subject::of(["k"]), limit)).count()
    }
}

fn one<'a>(subject: &'a Subject, limit: &'a Limit) -> Plan<'a> {
    Plan::new([Take::new(Key::new(subject, limit), 1)]).unwrap()
}

fn on_loss<'a>(subject: &'a Subject, limit: &'a Limit, on_store_loss: OnStoreLoss) -> Plan<'a> {
    let distribution = Distribution { on_store_loss, ..Distribution::default() };
    Plan::new([Take::new(Key::new(subject, limit), 1).with_distribution(distribution)]).unwrap()
}

fn take<'a, S: Store>(store: &S, plan: &Plan<'a>) -> Decision<'a> {
    block_on(store.take(plan)).unwrap()
}

/// Returns one limit per algorithm, with the same quota.
fn every_algorithm(count: u64) -> [Limit; 4] {
    let quota = Quota::per_minute(count);
    [
        Limit::token_bucket(quota).unwrap(),
        Limit::sliding_window(quota).unwrap(),
        Limit::sliding_counter(quota).unwrap(),
        Limit::fixed_window(quota).unwrap(),
    ]
}

/// A fallback store whose shared store always replies: it must conform as that store does.
struct Healthy {
    clock: ManualClock,
    store: FallbackStore<MemoryStore<ManualClock>, ManualClock>,
}

impl Fixture for Healthy {
    type Store = FallbackStore<MemoryStore<ManualClock>, ManualClock>;

    fn store(&self) -> &Self::Store {
        &self.store
    }

    fn set_now(&self, now: Timestamp) {
        self.clock.set(now);
    }

    /// The shared store of a node leases, not its fallback.
    fn can_lease(&self) -> bool {
        false
    }
}

fn healthy() -> Healthy {
    let clock = ManualClock::new();
    let memory = MemoryStore::builder().clock(clock.clone()).build();
    let store = FallbackStore::builder(memory).clock(clock.clone()).build();
    Healthy { clock, store }
}

tollgate_testkit::conformance!(healthy(), block_on);
