//! Models of the memory store: its shards, their tables, the count of keys and the registry of limits.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use shuttle::thread;

use crate::lease::WantedLease;
use crate::{
    AtCap, Decision, Key, LeaseSize, Limit, Listing, ManualClock, MemoryStore, Permit, PermitId,
    Plan, Quota, Subject, Take,
};

/// A hasher without random data, so that a run can be repeated.
#[derive(Debug, Clone, Copy)]
enum Hash {
    /// Subjects are in one shard.
    OneShard,
    /// Subjects are in several shards.
    AllShards,
}

impl BuildHasher for Hash {
    type Hasher = Fnv;

    fn build_hasher(&self) -> Fnv {
        Fnv { state: 0xCBF2_9CE4_8422_2325, hash: *self }
    }
}

#[derive(Debug)]
struct Fnv {
    state: u64,
    hash: Hash,
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.state = (self.state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
        }
    }

    fn finish(&self) -> u64 {
        match self.hash {
            Hash::OneShard => self.state % (1 << 24),
            // The highest bits select the shard.
            Hash::AllShards => (self.state ^ self.state >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        }
    }
}

/// A store that threads share.
type Store = Arc<MemoryStore<ManualClock, Hash>>;

fn store(hash: Hash, max_keys: usize) -> (Store, ManualClock) {
    let clock = ManualClock::new();
    let builder = MemoryStore::builder().clock(clock.clone()).hasher(hash);
    (Arc::new(builder.max_keys(max_keys).at_cap(AtCap::Deny).build()), clock)
}

/// A limit whose states are packed into a slot, one whose states are not, and one that a plan does not take in one lock.
fn limits(count: u64) -> [Limit; 3] {
    let quota = || Quota::per_day(count);
    [
        Limit::token_bucket(quota().burst(count)).unwrap(),
        Limit::fixed_window(quota()).unwrap(),
        Limit::sliding_window(quota()).unwrap(),
    ]
}

fn with_plan<T>(subjects: &[&str], limit: &Limit, cost: u64, f: impl FnOnce(&Plan<'_>) -> T) -> T {
    let subjects: Vec<Subject> = subjects.iter().map(|subject| Subject::of([*subject])).collect();
    let takes = subjects.iter().map(|subject| Take::new(Key::new(subject, limit), cost));
    f(&Plan::new(takes).unwrap())
}

/// Takes 1 from one key, or from all keys of a plan.
fn take(store: &Store, subjects: &[&str], limit: &Limit) -> bool {
    with_plan(subjects, limit, 1, |plan| store.take(plan).is_allowed())
}

fn remaining(store: &Store, subject: &str, limit: &Limit) -> u64 {
    let subject = Subject::of([subject]);
    store.stats(&Key::new(&subject, limit)).remaining()
}

fn reset(store: &Store, subject: &str, limit: &Limit) {
    let subject = Subject::of([subject]);
    store.reset(&Key::new(&subject, limit));
}

/// Runs `body` in several threads, each with its number. Returns their results.
fn in_threads<T: Send + 'static>(
    threads: usize,
    body: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let body = Arc::new(body);
    let start = |nth| {
        let body = Arc::clone(&body);
        thread::spawn(move || body(nth))
    };
    let started: Vec<_> = (0..threads).map(start).collect();
    started.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn sum(results: Vec<u64>) -> u64 {
    results.into_iter().sum()
}

/// Asserts that the store counts the keys that it has.
fn assert_count(store: &Store) {
    let occupancy = store.occupancy();
    assert!(occupancy.keys <= occupancy.max_keys, "{occupancy:?}");
    store.sweep(usize::MAX);
    let listed = store.list(&Listing::all().with_page_size(1000)).unwrap().keys.len();
    assert_eq!(store.occupancy().keys, listed, "{occupancy:?}");
}

/// The threads also register the limit at the same time.
pub(super) fn concurrent_takes_admit_exactly_the_limit() {
    for nth in 0..2 {
        let (store, _) = store(Hash::AllShards, 100);
        let shared = Arc::clone(&store);
        let admitted = sum(in_threads(3, move |_| {
            let limit = &limits(4)[nth];
            (0..2).map(|_| u64::from(take(&shared, &["k"], limit))).sum()
        }));
        assert_eq!(admitted, 4);
        assert_eq!(remaining(&store, "k", &limits(4)[nth]), 0);
        assert_count(&store);
    }
}

/// Keys of two threads grow the table in which a third one takes.
pub(super) fn takes_while_the_table_grows_admit_exactly_the_limit() {
    let (store, _) = store(Hash::OneShard, 100);
    let shared = Arc::clone(&store);
    let admitted = sum(in_threads(4, move |nth| {
        let limit = &limits(2)[0];
        match nth {
            0 | 1 => (0..2).map(|_| u64::from(take(&shared, &["k"], limit))).sum(),
            _ => {
                for other in 0..5 {
                    assert!(take(&shared, &[&format!("{nth}-{other}")], limit));
                }
                0
            }
        }
    }));
    assert_eq!(admitted, 2);
    assert_eq!(store.occupancy().keys, 11);
    assert_count(&store);
}

/// All keys are fresh again, and new keys of a full store drop them, also the one that others take from.
pub(super) fn takes_while_keys_are_evicted_admit_exactly_the_limit() {
    for nth in 0..2 {
        let (store, clock) = store(Hash::OneShard, 4);
        let limit = &limits(2)[nth];
        for subject in ["k", "a", "b"] {
            assert!(take(&store, &[subject], limit));
        }
        clock.advance(Duration::from_secs(2 * 86_400));
        let shared = Arc::clone(&store);
        let admitted = sum(in_threads(4, move |thread| {
            let limit = &limits(2)[nth];
            match thread {
                0 | 1 => (0..2).map(|_| u64::from(take(&shared, &["k"], limit))).sum(),
                2 => {
                    assert!(take(&shared, &["c"], limit) && take(&shared, &["d"], limit));
                    0
                }
                _ => {
                    shared.sweep(usize::MAX);
                    0
                }
            }
        }));
        assert_eq!(admitted, 2);
        for subject in ["c", "d"] {
            assert_eq!(remaining(&store, subject, limit), 1);
        }
        assert_count(&store);
    }
}

/// Each reset allows the limit once more.
pub(super) fn takes_while_a_key_is_removed_admit_the_limit_once_per_reset() {
    for nth in 0..2 {
        let (store, _) = store(Hash::AllShards, 100);
        let shared = Arc::clone(&store);
        let admitted = sum(in_threads(3, move |thread| {
            let limit = &limits(1)[nth];
            if thread == 2 {
                reset(&shared, "k", limit);
                return 0;
            }
            (0..2).map(|_| u64::from(take(&shared, &["k"], limit))).sum()
        }));
        assert!((1..=2).contains(&admitted), "{admitted}");
        let left = remaining(&store, "k", &limits(1)[nth]);
        assert!(admitted == 2 || left == 0 || admitted + left == 2, "{admitted} {left}");
        assert_count(&store);
    }
}

/// New keys, resets, sweeps of other shards, refused plans, and releases, in a store that is full.
pub(super) fn count_of_keys_is_that_of_the_tables() {
    let (store, clock) = store(Hash::AllShards, 3);
    let limit = &limits(1)[1];
    assert!(take(&store, &["a"], limit) && take(&store, &["b"], limit));
    clock.advance(Duration::from_secs(2 * 86_400));
    let shared = Arc::clone(&store);
    in_threads(3, move |thread| {
        let limit = &limits(1)[1];
        match thread {
            0 => {
                let _ = take(&shared, &["c"], limit);
                reset(&shared, "c", limit);
                let _ = take(&shared, &["c", "d"], limit);
            }
            1 => {
                let _ = take(&shared, &["d", "e"], limit);
                reset(&shared, "d", limit);
            }
            _ => {
                shared.sweep(usize::MAX);
                with_plan(&["f"], limit, 1, |plan| drop(shared.refund(plan)));
                with_plan(&["f"], limit, 1, |plan| drop(shared.debit(plan, Duration::ZERO)));
            }
        }
    });
    assert_count(&store);
}

/// Plans over shards that two threads name in opposite orders: no deadlock, and all or nothing.
pub(super) fn plans_over_several_shards_take_all_or_nothing() {
    for nth in 0..3 {
        let (store, _) = store(Hash::AllShards, 100);
        let shared = Arc::clone(&store);
        let admitted = sum(in_threads(3, move |thread| {
            let limit = &limits(2)[nth];
            let subjects: &[&str] = match thread {
                0 => &["a", "b"],
                1 => &["b", "a"],
                _ => &["a"],
            };
            (0..2).map(|_| u64::from(take(&shared, subjects, limit))).sum()
        }));
        let limit = &limits(2)[nth];
        let left = ["a", "b"].map(|subject| remaining(&store, subject, limit));
        assert_eq!(left[0], 0);
        assert_eq!(admitted, 2, "only takes from `a` pass, each of 1");
        assert!(left[1] <= 2);
        assert_count(&store);
    }
}

/// Threads hold and release slots: never more at a time than the limit, and none is left.
pub(super) fn slots_are_never_held_twice() {
    let (store, _) = store(Hash::AllShards, 100);
    let (shared, held) = (Arc::clone(&store), Arc::new(std::sync::atomic::AtomicUsize::new(0)));
    let slots = || Limit::concurrency(1, Duration::from_secs(30)).unwrap();
    in_threads(3, move |_| {
        use std::sync::atomic::Ordering::SeqCst;
        let (limit, subject) = (slots(), Subject::of(["k"]));
        let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap();
        let plan = plan.with_permit(PermitId::random());
        let decision: Decision<'_> = shared.take(&plan);
        let Some(permit) = Permit::of(&plan, &decision) else { return };
        assert_eq!(held.fetch_add(1, SeqCst), 0, "one slot, two holders");
        assert!(shared.renew(&permit).is_some());
        assert_eq!(held.fetch_sub(1, SeqCst), 1);
        assert!(shared.release(&permit));
        assert!(!shared.release(&permit));
    });
    assert_eq!(remaining(&store, "k", &slots()), 1);
    assert_count(&store);
}

/// The leased and the taken amounts together never exceed the limit.
pub(super) fn leases_and_takes_share_the_limit() {
    let (store, _) = store(Hash::AllShards, 100);
    let limit = || Limit::fixed_window(Quota::per_day(100)).unwrap().with_lease(LeaseSize::Auto);
    let shared = Arc::clone(&store);
    let taken = sum(in_threads(3, move |thread| {
        let limit = limit();
        if thread == 2 {
            return (0..3).map(|_| u64::from(take(&shared, &["k"], &limit))).sum();
        }
        let wanted = WantedLease::new([(0, 40)], limit.lease_hold().unwrap());
        let reply = with_plan(&["k"], &limit, 1, |plan| shared.lease(plan, &wanted)).unwrap();
        reply.takes()[0].amount
    }));
    assert_eq!(remaining(&store, "k", &limit()), 100 - taken);
    assert_count(&store);
}
