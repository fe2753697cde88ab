//! A boxed store keeps the contract of the store inside it.

use std::sync::Arc;
use std::time::Duration;

use tollgate::{
    BreakerState, DynStore, FallbackStore, Key, Limit, ManualClock, MemoryStore, Plan, Quota,
    Store, Subject, Take, Timestamp,
};
use tollgate_testkit::conformance::Fixture;
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_testkit::runtime::block_on;

struct Boxed {
    clock: ManualClock,
    store: DynStore,
}

impl Fixture for Boxed {
    type Store = DynStore;

    fn store(&self) -> &Self::Store {
        &self.store
    }

    fn set_now(&self, now: Timestamp) {
        self.clock.set(now);
    }
}

fn fixture() -> Boxed {
    let clock = ManualClock::new();
    let memory = MemoryStore::builder().clock(clock.clone()).build();
    Boxed { store: DynStore::new(memory), clock }
}

tollgate_testkit::conformance!(fixture(), block_on);

#[test]
fn maintenance_reaches_the_store_inside() {
    let shared = Arc::new(FaultyStore::new(MemoryStore::new()));
    shared.set(StoreFault::Unreachable);
    let clock = ManualClock::new();
    let fallback = FallbackStore::builder(Arc::clone(&shared)).clock(clock.clone()).build();
    let fallback = Arc::new(fallback);
    let store = DynStore::new(Arc::clone(&fallback));
    let subject = Subject::of(["k"]);
    let limit = Limit::fixed_window(Quota::per_minute(1000)).unwrap();
    let take = Take::new(Key::new(&subject, &limit), 1);
    let plan = Plan::new([take]).unwrap();
    while fallback.breaker() == BreakerState::Closed {
        assert!(block_on(store.take(&plan)).unwrap().is_degraded());
    }
    shared.set(StoreFault::None);
    while fallback.breaker() != BreakerState::Closed {
        clock.advance(Duration::from_secs(1));
        block_on(store.maintain());
    }
    assert!(!block_on(store.take(&plan)).unwrap().is_degraded());
}
