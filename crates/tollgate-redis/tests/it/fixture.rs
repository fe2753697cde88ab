//! Stores over servers of their own.

use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::{Builder, Runtime};
use tollgate::{ManualClock, Timestamp};
use tollgate_redis::{Address, RedisStore};
use tollgate_testkit::conformance::Fixture;
use tollgate_testkit::server::{Flavor, Server};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());

/// Runs a future to its end on the tests' one runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// One server of each flavour for all the tests of this process, which differ by their keys' prefix.
pub(crate) fn shared(flavor: Flavor) -> &'static Server {
    static REDIS: LazyLock<Server> = LazyLock::new(|| Server::start(Flavor::Redis));
    static VALKEY: LazyLock<Server> = LazyLock::new(|| Server::start(Flavor::Valkey));
    match flavor {
        Flavor::Redis => &REDIS,
        Flavor::Valkey => &VALKEY,
    }
}

pub(crate) fn address(server: &Server) -> Address {
    server.url().parse().unwrap()
}

/// A prefix that no other test has.
pub(crate) fn prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("test{}:", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A store that nobody else uses, whose time a test sets.
pub(crate) struct Timed {
    clock: ManualClock,
    store: RedisStore,
}

impl Timed {
    pub(crate) fn new(flavor: Flavor) -> Self {
        let clock = ManualClock::new();
        let builder = RedisStore::builder(address(shared(flavor))).prefix(prefix()).unwrap();
        let builder = builder.timeout(std::time::Duration::from_secs(30));
        Self { store: builder.clock(clock.clone()).build(), clock }
    }
}

impl Fixture for Timed {
    type Store = RedisStore;

    fn store(&self) -> &RedisStore {
        &self.store
    }

    fn set_now(&self, now: Timestamp) {
        self.clock.set(now);
    }
}
