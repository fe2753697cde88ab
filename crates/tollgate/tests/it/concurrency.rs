//! Decisions are exact under concurrency.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::{
    Key, Limit, LocalLimiter, ManualClock, MemoryStore, Permit, PermitId, Plan, Quota, Subject,
    Take,
};

const THREADS: u64 = 8;
const KEYS: [&str; 3] = ["a", "b", "c"];

/// Takes from every key in turn on all threads, and returns the number of admissions per key.
fn hammer<C: tollgate::Clock>(limiter: &LocalLimiter<C>, takes_each: u64) -> [u64; 3] {
    let admitted = [const { AtomicU64::new(0) }; 3];
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..takes_each {
                    for (key, admitted) in KEYS.iter().zip(&admitted) {
                        let passed = limiter.take(key).is_allowed();
                        admitted.fetch_add(u64::from(passed), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    admitted.map(AtomicU64::into_inner)
}

/// Takes per thread and key: more in total than any of the limits. `TOLLGATE_TAKES` overrides it.
fn takes_each() -> u64 {
    let configured = std::env::var("TOLLGATE_TAKES").ok().and_then(|takes| takes.parse().ok());
    configured.unwrap_or(80_000)
}

#[test]
fn eight_threads_admit_exactly_the_limit() {
    let quota = |count| Quota::new(count, Duration::from_secs(36_525 * 86_400));
    for limit in [
        Limit::token_bucket(quota(500_000)),
        Limit::sliding_window(quota(100_000)),
        Limit::sliding_counter(quota(500_000)),
        Limit::fixed_window(quota(500_000)),
        Limit::calendar_window(500_000, tollgate::algorithm::CalendarUnit::Year, "UTC"),
        Limit::concurrency(100_000, Duration::from_secs(36_525 * 86_400)),
    ] {
        let limit = limit.unwrap();
        let count = limit.count();
        let builder = LocalLimiter::builder().limit(limit.clone()).clock(ManualClock::new());
        let admitted = hammer(&builder.build().unwrap(), takes_each());
        assert_eq!(admitted, [count; 3], "{}", limit.algorithm());
    }
}

/// With the real clock and a continuous refill, admissions plus remaining tokens equal the refill, to the
/// token.
#[test]
fn refill_under_contention_is_exact() {
    // Starts empty and is too large to fill up, so that no refill is lost.
    let burst = 1_000_000_000;
    let limiter =
        LocalLimiter::new(Limit::token_bucket(Quota::per_second(1000).burst(burst)).unwrap());
    let emptied = limiter.debit("a", burst, Duration::ZERO);
    let (start, remaining) = (emptied.at(), emptied.remaining());
    assert_eq!(remaining, Some(0));
    let admitted = hammer(&limiter, 40_000)[0];
    let last = limiter.stats("a");
    let elapsed = last.at().as_micros() - start.as_micros();
    assert_eq!(admitted + last.remaining().unwrap(), elapsed / 1000, "in {elapsed} us");
}

/// Plans with their keys in different orders neither deadlock nor take partially.
#[test]
fn plans_in_different_key_orders_are_all_or_nothing() {
    let store = MemoryStore::builder().clock(ManualClock::new()).build();
    let quota = Quota::per_day(60_000);
    let limits = [Limit::token_bucket(quota).unwrap(), Limit::sliding_window(quota).unwrap()];
    let subjects = [Subject::of(["x"]), Subject::of(["y"]), Subject::of(["z"])];
    let passed = AtomicU64::new(0);
    thread::scope(|scope| {
        for nth in 0..THREADS {
            let (store, limits, subjects, passed) = (&store, &limits, &subjects, &passed);
            scope.spawn(move || {
                let mut takes: Vec<Take<'_>> = Vec::new();
                for subject in subjects {
                    takes.extend(limits.iter().map(|limit| Take::new(Key::new(subject, limit), 1)));
                }
                takes.rotate_left(usize::try_from(nth).unwrap() % 6);
                let plan = Plan::new(takes).unwrap();
                for _ in 0..10_000 {
                    let allowed = store.take(&plan).is_allowed();
                    passed.fetch_add(u64::from(allowed), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(passed.into_inner(), 60_000);
    for subject in &subjects {
        for limit in &limits {
            assert_eq!(store.stats(&Key::new(subject, limit)).remaining(), 0);
        }
    }
}

/// The number of keys stays correct during concurrent takes, sweeps, listings and resets.
#[test]
fn key_count_is_exact_under_concurrent_operations() {
    let clock = ManualClock::new();
    let builder = LocalLimiter::builder().limit(Limit::token_bucket(Quota::per_second(3)).unwrap());
    let limiter = builder.clock(clock.clone()).max_keys(5000).build().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let takers: Vec<_> = (0..4)
            .map(|nth| {
                let limiter = &limiter;
                scope.spawn(move || {
                    for n in 0..40_000 {
                        let _ = limiter.take(&format!("{nth}-{}", n % 7000));
                        if n % 10 == 0 {
                            limiter.reset(&format!("{nth}-{}", n % 300));
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                clock.advance(Duration::from_millis(1));
                let _ = limiter.sweep(500);
                let _ = limiter.list(&tollgate::Listing::all()).unwrap();
            }
        });
        for taker in takers {
            taker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    clock.advance(Duration::from_secs(10));
    let held = limiter.occupancy().keys;
    assert!(held <= 5000);
    assert_eq!(limiter.sweep(usize::MAX), held);
    assert_eq!(limiter.occupancy().keys, 0);
}

/// Eight threads take and release slots: at most three are in use at any time, and none at the end.
#[test]
fn slots_in_use_never_exceed_the_limit() {
    let store = MemoryStore::new();
    let limit = Limit::concurrency(3, Duration::from_secs(3600)).unwrap();
    let subject = Subject::of(["k"]);
    let (in_flight, max, passed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap();
                    let plan = plan.with_permit(PermitId::random());
                    let Some(permit) = Permit::of(&plan, &store.take(&plan)) else {
                        thread::yield_now();
                        continue;
                    };
                    max.fetch_max(in_flight.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    passed.fetch_add(1, Ordering::Relaxed);
                    in_flight.fetch_sub(1, Ordering::SeqCst);
                    assert!(store.release(&permit), "the permit's slot was lost");
                }
            });
        }
    });
    assert!(max.into_inner() <= 3);
    assert!(passed.into_inner() >= 3);
    assert_eq!(store.stats(&Key::new(&subject, &limit)).count(), 0);
    assert_eq!(store.occupancy().keys, 0, "a key without slots is dropped immediately");
}
