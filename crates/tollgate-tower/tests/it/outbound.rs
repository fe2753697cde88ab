//! The methods of an outbound limiter.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Instant, advance};
use tollgate::policy::NamedLimits;
use tollgate::{Limit, MemoryStore, Quota};
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_tower::outbound::{AcquireError, LimiterEvent, NamedLimiter};

use crate::outbound_fixture::{SECOND, TICK, limiter, memory, per_second, refusal};

#[tokio::test(start_paused = true)]
async fn fifth_of_five_rapid_calls_waits() {
    let (limiter, start) = (limiter(per_second(4)), Instant::now());
    for remaining in [3, 2, 1, 0] {
        let acquired = limiter.acquire().await.unwrap();
        assert_eq!((acquired.remaining, acquired.waited), (remaining, Duration::ZERO));
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    let fifth = limiter.acquire().await.unwrap();
    assert!((SECOND..=SECOND + TICK).contains(&fifth.waited), "{fifth:?}");
    assert_eq!(fifth.waited, start.elapsed());
    // The first four calls left the window together.
    assert_eq!(fifth.remaining, 3);
    let counts = limiter.counts();
    assert_eq!((counts.acquired, counts.waited, counts.refused, counts.waiting), (5, 1, 0, 0));
    assert_eq!((counts.mean_wait, counts.max_wait), (fifth.waited, fifth.waited));
}

#[tokio::test(start_paused = true)]
async fn immediate_mode_refuses_with_key_and_retry_time() {
    let limiter = limiter(per_second(4).immediate());
    limiter.acquire_many(4).await.unwrap();
    advance(Duration::from_millis(250)).await;
    let error = limiter.acquire().await.unwrap_err();
    assert_eq!(error.to_string(), "Rate limit exceeded for key 'igdb:api'");
    assert_eq!(error.retry_after(), Some(Duration::from_millis(750)));
    assert!(error.is_transient());
    let expected = ("igdb:api".to_owned(), Some(Duration::from_millis(750)));
    assert_eq!(refusal(limiter.try_acquire().await), expected);
    assert_eq!(limiter.counts().refused, 2);
    advance(Duration::from_millis(750)).await;
    assert_eq!(limiter.try_acquire().await.unwrap().remaining, 3);
}

#[tokio::test(start_paused = true)]
async fn peek_takes_nothing() {
    let limiter = limiter(per_second(4));
    limiter.acquire_many(3).await.unwrap();
    for _ in 0..3 {
        let peeked = limiter.peek().await.unwrap();
        assert_eq!((peeked.allowed, peeked.remaining, peeked.retry_after), (true, 1, None));
    }
    limiter.acquire().await.unwrap();
    let peeked = limiter.peek().await.unwrap();
    assert_eq!((peeked.allowed, peeked.remaining, peeked.retry_after), (false, 0, Some(SECOND)));
}

#[tokio::test(start_paused = true)]
async fn stats_exclude_takes_outside_the_window() {
    let minute = Limit::token_bucket(Quota::per_minute(10)).unwrap();
    let second = Limit::sliding_window(Quota::per_second(4)).unwrap();
    let limiter = limiter(NamedLimits::with_limits("k", vec![minute, second]).unwrap());
    limiter.acquire_many(3).await.unwrap();
    let stats = limiter.stats().await.unwrap();
    assert_eq!((stats.count, stats.limit, stats.window, stats.remaining), (3, 4, SECOND, 1));
    advance(SECOND).await;
    let stats = limiter.stats_per_limit().await.unwrap();
    assert_eq!(
        stats.iter().map(|stats| (stats.count, stats.limit)).collect::<Vec<_>>(),
        [(3, 10), (0, 4)]
    );
}

#[tokio::test(start_paused = true)]
async fn reset_clears_usage_and_pauses_and_wakes_waiters() {
    let (limiter, start) = (limiter(per_second(4)), Instant::now());
    limiter.acquire_many(4).await.unwrap();
    limiter.pause(Duration::from_secs(3600)).await.unwrap();
    let waiter = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire().await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(limiter.counts().waiting, 1);
    limiter.reset().await.unwrap();
    assert_eq!(waiter.await.unwrap().unwrap().remaining, 3);
    assert!(start.elapsed() < Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn pause_refuses_although_quota_is_left() {
    let (limiter, start) = (limiter(per_second(4)), Instant::now());
    limiter.pause(Duration::from_secs(30)).await.unwrap();
    assert_eq!(refusal(limiter.try_acquire().await).1, Some(Duration::from_secs(30)));
    limiter.acquire().await.unwrap();
    assert!((30..=31).contains(&start.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn cost_above_the_limit_is_refused_immediately() {
    let limiter = limiter(per_second(4));
    for _ in 0..2 {
        let error = limiter.acquire_many(5).await.unwrap_err();
        assert_eq!((error.retry_after(), error.is_transient()), (None, false));
        // With and without quota left.
        limiter.acquire_many(4).await.unwrap();
    }
    assert_eq!(refusal(limiter.acquire_many(u64::MAX).await), ("igdb:api".to_owned(), None));
}

#[tokio::test(start_paused = true)]
async fn callback_receives_events() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let limiter = NamedLimiter::builder(memory(), per_second(1))
        .on_event(move |event| {
            sink.lock().unwrap().push(match event {
                LimiterEvent::Waited { key, duration } => {
                    format!("{key} waited {}", duration.as_secs())
                }
                LimiterEvent::Refused(refused) => refused.to_string(),
                LimiterEvent::Paused { key, duration } => format!("{key} paused {duration:?}"),
                other => format!("{other:?}"),
            });
        })
        .build();
    limiter.acquire().await.unwrap();
    limiter.acquire().await.unwrap();
    limiter.try_acquire().await.unwrap_err();
    limiter.pause(SECOND).await.unwrap();
    let expected =
        ["igdb:api waited 1", "Rate limit exceeded for key 'igdb:api'", "igdb:api paused 1s"];
    assert_eq!(*events.lock().unwrap(), expected);
}

#[tokio::test]
async fn store_errors_map_to_distinct_variants() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let limiter = NamedLimiter::new(Arc::clone(&store), per_second(4));
    store.set(StoreFault::Unreachable);
    let error = limiter.acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)) && error.is_transient(), "{error:?}");
    assert!(matches!(limiter.peek().await, Err(AcquireError::Unavailable(_))));
    store.set(StoreFault::ReplyLost);
    let error = limiter.try_acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Timeout(_)) && error.is_transient(), "{error:?}");
    store.set(StoreFault::Unreadable);
    let error = limiter.acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Store(_)) && !error.is_transient(), "{error:?}");
    store.set(StoreFault::Overloaded);
    let error = limiter.acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Overloaded(_)) && error.is_transient(), "{error:?}");
    assert_eq!((limiter.counts().failed, limiter.counts().acquired), (4, 0));
}

#[test]
fn only_waiting_needs_a_runtime() {
    let limiter = NamedLimiter::new(MemoryStore::new(), per_second(1));
    let mut context = Context::from_waker(Waker::noop());
    let mut acquire = || match pin!(limiter.acquire()).poll(&mut context) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("pending without a runtime"),
    };
    assert!(acquire().is_ok());
    assert!(matches!(acquire(), Err(AcquireError::NoRuntime)));
}
