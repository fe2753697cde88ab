//! The queue is FIFO, and callers that give up do not delay others.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep, timeout};
use tollgate_tower::outbound::{AcquireError, Acquired, NamedLimiter};

use crate::outbound_fixture::{Memory, SECOND, TICK, limiter, memory, per_second, refusal};

type Log = Arc<Mutex<Vec<(u64, u64)>>>;

/// Starts a caller that logs when it was admitted, in tenths of a second.
async fn start(limiter: &NamedLimiter<Memory>, log: &Log, start_time: Instant, id: u64) {
    start_with(limiter, log, start_time, id, 1).await;
}

async fn start_with(
    limiter: &NamedLimiter<Memory>,
    log: &Log,
    start_time: Instant,
    id: u64,
    cost: u64,
) {
    let (limiter, log) = (limiter.clone(), Arc::clone(log));
    tokio::spawn(async move {
        limiter.acquire_many(cost).await.unwrap();
        let tenths = u64::try_from(start_time.elapsed().as_millis() / 100).unwrap();
        log.lock().unwrap().push((id, tenths));
    });
    // The caller has called the store and waits.
    yield_now().await;
}

#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_arrival_order() {
    let (limiter, log, start_time) = (limiter(per_second(2)), Log::default(), Instant::now());
    limiter.acquire_many(2).await.unwrap();
    for id in 0..20 {
        start(&limiter, &log, start_time, id).await;
        advance(TICK).await;
    }
    assert_eq!(limiter.counts().waiting, 20);
    sleep(Duration::from_secs(30)).await;
    let served = log.lock().unwrap().clone();
    assert_eq!(served.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    // Two per second: none is late.
    let seconds: Vec<u64> = served.iter().map(|(_, tenths)| tenths / 10).collect();
    assert_eq!(seconds, (0..20).map(|id| 1 + id / 2).collect::<Vec<_>>());
}

/// A larger cost needs a longer wait but keeps its place.
#[tokio::test(start_paused = true)]
async fn waiters_of_different_costs_keep_arrival_order() {
    let (limiter, log, start_time) = (limiter(per_second(3)), Log::default(), Instant::now());
    for _ in 0..3 {
        limiter.acquire().await.unwrap();
        advance(Duration::from_millis(300)).await;
    }
    for id in 0..20 {
        start_with(&limiter, &log, start_time, id, 3 - id % 3).await;
    }
    assert_eq!(limiter.counts().waiting, 20);
    sleep(Duration::from_secs(60)).await;
    let served: Vec<u64> = log.lock().unwrap().iter().map(|(id, _)| *id).collect();
    assert_eq!(served, (0..20).collect::<Vec<_>>());
}

/// The first caller needs more than is left; the second would fit.
#[tokio::test(start_paused = true)]
async fn later_caller_does_not_overtake_the_first() {
    let store = memory();
    let limiter = NamedLimiter::new(Arc::clone(&store), per_second(4));
    limiter.acquire().await.unwrap();
    let large = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire_many(4).await }
    });
    yield_now().await;
    assert_eq!(limiter.peek().await.unwrap().remaining, 3);
    assert_eq!(refusal(limiter.try_acquire().await).1, Some(SECOND));
    assert_eq!(refusal(limiter.acquire_within(SECOND / 2).await).1, Some(SECOND));
    // Another process has its own queue.
    let other = NamedLimiter::new(store, per_second(4));
    assert_eq!(other.try_acquire().await.unwrap().remaining, 2);
    assert_eq!(large.await.unwrap().unwrap().remaining, 0);
}

#[tokio::test(start_paused = true)]
async fn too_short_max_wait_is_refused_immediately() {
    let (limiter, start_time) = (limiter(per_second(4)), Instant::now());
    limiter.acquire_many(4).await.unwrap();
    let short = Duration::from_millis(999);
    assert_eq!(refusal(limiter.acquire_within(short).await).1, Some(SECOND));
    assert_eq!(start_time.elapsed(), Duration::ZERO);
    assert!(limiter.acquire_within(SECOND).await.unwrap().waited >= SECOND);
    let by_mode = crate::outbound_fixture::limiter(per_second(1).longest_wait(short));
    by_mode.acquire().await.unwrap();
    assert_eq!(refusal(by_mode.acquire().await).1, Some(SECOND));
    assert!(limiter.acquire_within(Duration::MAX).await.is_ok());
}

/// One per second: the first two in the queue are served at 1 s and 2 s, the third gives up at 1.5 s, and the fourth
/// takes its place.
#[tokio::test(start_paused = true)]
async fn timed_out_waiter_does_not_delay_others() {
    let (limiter, log, start_time) = (limiter(per_second(1)), Log::default(), Instant::now());
    limiter.acquire().await.unwrap();
    start(&limiter, &log, start_time, 1).await;
    start(&limiter, &log, start_time, 2).await;
    let impatient: tokio::task::JoinHandle<(Result<Acquired, AcquireError>, Duration)> =
        tokio::spawn({
            let limiter = limiter.clone();
            async move {
                let result = limiter.acquire_within(Duration::from_millis(1500)).await;
                (result, start_time.elapsed())
            }
        });
    yield_now().await;
    start(&limiter, &log, start_time, 4).await;
    assert_eq!(limiter.counts().waiting, 4);
    let (result, after) = impatient.await.unwrap();
    assert!((1500..=1502).contains(&after.as_millis()), "{after:?}");
    // The retry time of the first caller in the queue.
    let retry_after = refusal(result).1.unwrap();
    assert!((498..=502).contains(&retry_after.as_millis()), "{retry_after:?}");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(*log.lock().unwrap(), [(1, 10), (2, 20), (4, 30)]);
    assert_eq!(limiter.counts().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn next_waiter_becomes_first_when_first_is_dropped() {
    let (limiter, log, start_time) = (limiter(per_second(1)), Log::default(), Instant::now());
    limiter.acquire().await.unwrap();
    let first = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire_many(1).await }
    });
    yield_now().await;
    start(&limiter, &log, start_time, 2).await;
    let third = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire().await }
    });
    yield_now().await;
    start(&limiter, &log, start_time, 4).await;
    first.abort();
    third.abort();
    sleep(Duration::from_secs(3)).await;
    assert_eq!(*log.lock().unwrap(), [(2, 10), (4, 20)]);
    // The dropped callers took nothing.
    assert_eq!(limiter.counts().acquired, 3);
}

/// The retry time of a dropped waiter does not refuse later callers.
#[tokio::test(start_paused = true)]
async fn dropped_wait_clears_the_retry_time() {
    let limiter = limiter(per_second(1));
    limiter.pause(Duration::from_secs(3600)).await.unwrap();
    assert!(timeout(SECOND, limiter.acquire()).await.is_err(), "the limiter is paused for an hour");
    limiter.reset().await.unwrap();
    limiter.acquire().await.unwrap();
    let second = limiter.acquire_within(2 * SECOND).await.unwrap();
    assert!((SECOND..=SECOND + TICK).contains(&second.waited), "{second:?}");
}
