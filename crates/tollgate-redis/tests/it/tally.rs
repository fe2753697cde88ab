//! Takes that are counted while servers fail.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tollgate::{Limit, Plan, Quota, Store, StoreErrorKind, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::Server;
use tollgate_testkit::wait::{MAX_WAIT, eventually, pause};

use crate::fixture::{block_on, plan};

/// The most that one caller may lose of what it asked while connections broke.
pub(crate) const LOST: u64 = 3;

/// What takes came to.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Takes once.
    pub(crate) fn take(&mut self, store: &RedisStore, plan: &Plan<'_>) {
        match block_on(store.take(plan)) {
            Ok(decision) if decision.is_allowed() => self.admitted += 1,
            Ok(_) => self.refused += 1,
            Err(error) => {
                let is_right =
                    matches!(error.kind(), StoreErrorKind::Timeout | StoreErrorKind::Unavailable);
                assert!(is_right, "{error}");
                self.failed += 1;
                pause();
            }
        }
    }

    /// Takes until a take is refused: by the primary, as the store remembers none.
    pub(crate) fn use_up(&mut self, store: &RedisStore, plan: &Plan<'_>) {
        let (before, began) = (self.refused, Instant::now());
        while self.refused == before {
            self.take(store, plan);
            assert!(began.elapsed() < MAX_WAIT, "still not used up: {self:?}");
        }
    }
}

/// What takes came to that went on while something happened.
pub(crate) fn meanwhile(store: &RedisStore, plan: &Plan<'_>, happens: impl FnOnce()) -> Tally {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut tally = Tally::default();
            while !is_over.load(Ordering::Relaxed) {
                tally.take(store, plan);
                pause();
            }
            tally
        });
        // Also if it fails: the load would go on, and the test with it.
        let happened = catch_unwind(AssertUnwindSafe(happens));
        is_over.store(true, Ordering::Relaxed);
        let tally = load.join().unwrap();
        happened.unwrap_or_else(|panic| resume_unwind(panic));
        tally
    })
}

/// Of which nothing comes back while a test runs.
pub(crate) fn lasting(count: u64) -> Limit {
    Limit::fixed_window(Quota::new(count, Duration::from_secs(36_525 * 86_400))).unwrap()
}

/// Waits until the replicas have all that the primary has now, where a key is marked.
pub(crate) fn sync(primary: &Server, mark: &str, replicas: &str) {
    let mut raw = primary.raw();
    raw.call(&["SET", mark, "1"]);
    eventually("replicas have everything", || {
        raw.call(&["WAIT", replicas, "1000"]).int().to_string() == replicas
    });
}

/// From a key that nobody knows exactly its limit is admitted.
pub(crate) fn assert_exact(store: &RedisStore) {
    let (subject, limit) = (Subject::of(["another"]), lasting(50));
    let ask = plan(&subject, &limit, 1);
    let passed = (0..60).filter(|_| block_on(store.take(&ask)).unwrap().is_allowed());
    assert_eq!(passed.count(), 50);
}
