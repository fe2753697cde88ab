//! Blocking limiters, for programs without a runtime.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tollgate::MemoryStore;
use tollgate_tower::outbound::blocking::{BlockingLimiter, BlockingLimiters};
use tollgate_tower::outbound::{AcquireError, Limiters, NamedLimiter};

use crate::outbound_fixture::{per, per_century, redis, redis_store, refusal};

#[test]
fn methods_match_the_async_limiter() {
    let limiter = NamedLimiter::new(MemoryStore::new(), per_century(4));
    let limiter = BlockingLimiter::new(limiter).unwrap();
    assert_eq!(limiter.acquire().unwrap().remaining, 3);
    assert_eq!(limiter.acquire_many(2).unwrap().remaining, 1);
    assert_eq!(limiter.peek().unwrap().remaining, 1);
    assert_eq!(limiter.stats().unwrap().count, 3);
    assert_eq!(limiter.try_acquire().unwrap().remaining, 0);
    assert_eq!(refusal(limiter.try_acquire()).0, "igdb:api");
    let short = Duration::from_secs(1);
    assert!(refusal(limiter.acquire_within(short)).1.is_some_and(|wait| wait > short));
    limiter.reset().unwrap();
    limiter.pause(Duration::from_secs(1000)).unwrap();
    assert!(!limiter.peek().unwrap().allowed);
    assert_eq!((limiter.counts().acquired, limiter.counts().refused), (3, 2));
}

#[test]
fn threads_share_the_quota_of_each_window() {
    let window = Duration::from_millis(100);
    let limiter = NamedLimiter::new(MemoryStore::new(), per(5, window));
    let (limiter, start) = (BlockingLimiter::new(limiter).unwrap(), Instant::now());
    let callers = (0..15).map(|_| {
        let limiter = limiter.clone();
        thread::spawn(move || limiter.acquire().unwrap())
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.join().unwrap();
    }
    assert!(start.elapsed() >= 2 * window);
    assert_eq!(limiter.counts().acquired, 15);
}

#[test]
fn redis_connection_persists_between_calls() {
    let store = redis_store(&redis().url(), "blocking:");
    let hour = Duration::from_secs(3600);
    let limiters = Limiters::builder(store)
        .limiter(per(4, hour).named("one").unwrap())
        .limiter(per(4, hour).named("same").unwrap())
        .build();
    let limiters = BlockingLimiters::new(limiters).unwrap();
    let one = limiters.require("one").unwrap();
    assert_eq!(one.acquire().unwrap().remaining, 3);
    drop(one);
    assert_eq!(limiters.get("same").unwrap().acquire_many(3).unwrap().remaining, 0);
    assert!(refusal(limiters.get("one").unwrap().try_acquire()).1.is_some());
    assert!(limiters.get("two").is_none());
}

#[tokio::test]
async fn call_inside_a_runtime_is_an_error() {
    let limiter = NamedLimiter::new(Arc::new(MemoryStore::new()), per_century(4));
    let blocking = BlockingLimiter::new(limiter.clone()).unwrap();
    let error = blocking.acquire().unwrap_err();
    assert!(matches!(error, AcquireError::WithinRuntime) && !error.is_transient(), "{error:?}");
    assert!(matches!(blocking.stats(), Err(AcquireError::WithinRuntime)));
    // Dropping it inside a runtime works, and the wrapped limiter stays usable.
    drop(blocking);
    assert_eq!(limiter.acquire().await.unwrap().remaining, 3);
}
