//! Conformance suite on the memory store.

use tollgate::{ManualClock, MemoryStore, Timestamp};
use tollgate_testkit::conformance::Fixture;
use tollgate_testkit::runtime::block_on;

struct Memory {
    clock: ManualClock,
    store: MemoryStore<ManualClock>,
}

impl Fixture for Memory {
    type Store = MemoryStore<ManualClock>;

    fn store(&self) -> &Self::Store {
        &self.store
    }

    fn set_now(&self, now: Timestamp) {
        self.clock.set(now);
    }
}

fn fixture() -> Memory {
    let clock = ManualClock::new();
    Memory { store: MemoryStore::builder().clock(clock.clone()).build(), clock }
}

tollgate_testkit::conformance!(fixture(), block_on);
