//! Counts of takes while servers fail.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tollgate::{Limit, Plan, Quota, Store, StoreErrorKind, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::Server;
use tollgate_testkit::wait::{MAX_WAIT, eventually, pause};

use crate::fixture::{block_on, plan};

/// Maximum number of takes that one caller may lose to broken connections.
pub(crate) const LOST: u64 = 3;

/// The results of takes.
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
                use StoreErrorKind::{Lost, Timeout, Unavailable};
                let is_right = matches!(error.kind(), Timeout | Lost | Unavailable);
                assert!(is_right, "{error}");
                self.failed += 1;
                pause();
            }
        }
    }

    /// Takes until Redis refuses. The refusal cache of the store must be off.
    pub(crate) fn use_up(&mut self, store: &RedisStore, plan: &Plan<'_>) {
        let (before, began) = (self.refused, Instant::now());
        while self.refused == before {
            self.take(store, plan);
            assert!(began.elapsed() < MAX_WAIT, "still not used up: {self:?}");
        }
    }
}

/// Runs `happens` and takes continuously meanwhile.
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
        // Stops the load even if it panics.
        let happened = catch_unwind(AssertUnwindSafe(happens));
        is_over.store(true, Ordering::Relaxed);
        let tally = load.join().unwrap();
        happened.unwrap_or_else(|panic| resume_unwind(panic));
        tally
    })
}

/// A limit of a window that does not end during a test.
pub(crate) fn century_window(count: u64) -> Limit {
    Limit::fixed_window(Quota::new(count, Duration::from_secs(36_525 * 86_400))).unwrap()
}

/// Waits until the replicas have everything that the primary has now.
pub(crate) fn sync(primary: &Server, mark: &str, replicas: &str) {
    let mut raw = primary.raw();
    raw.call(&["SET", mark, "1"]);
    eventually("replicas have everything", || {
        raw.call(&["WAIT", replicas, "1000"]).int().to_string() == replicas
    });
}

/// Asserts that exactly the limit of an unused key is admitted.
pub(crate) fn assert_exact(store: &RedisStore) {
    let (subject, limit) = (Subject::of(["another"]), century_window(50));
    let request = plan(&subject, &limit, 1);
    let passed = (0..60).filter(|_| block_on(store.take(&request)).unwrap().is_allowed());
    assert_eq!(passed.count(), 50);
}
