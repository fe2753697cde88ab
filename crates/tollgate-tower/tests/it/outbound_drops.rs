//! An acquire that is dropped takes nothing, wherever it was.

use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};
use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::wait::{MAX_WAIT, pause};
use tollgate_tower::outbound::NamedLimiter;

use crate::outbound_fixture::{SECOND, limiter, patient, per, per_century, redis};

/// When a caller comes, when it has gone at the latest, and what it wants, in milliseconds.
type Caller = (u64, u64, u64);

/// What the limiter counts at a time, and what callers had of it in the window before.
async fn counted_and_had(callers: Vec<Caller>, at: u64) -> (u64, u64) {
    let (limiter, began) = (limiter(per(3, SECOND)), Instant::now());
    let callers = callers.into_iter().map(|(comes, stays, cost)| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(comes)).await;
            let acquired = timeout(Duration::from_millis(stays), limiter.acquire_many(cost)).await;
            acquired.is_ok_and(|acquired| acquired.is_ok()).then(|| (began.elapsed(), cost))
        })
    });
    let callers: Vec<_> = callers.collect();
    sleep(Duration::from_millis(at)).await;
    let (now, counted) = (began.elapsed(), limiter.stats().await.unwrap().count);
    let mut had = 0;
    for caller in callers {
        if let Some((then, cost)) = caller.await.unwrap()
            && then <= now
            && then + SECOND > now
        {
            had += cost;
        }
    }
    (counted, had)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn over_memory_what_is_used_is_what_was_had(
        callers in prop::collection::vec((0_u64..1000, 0_u64..1500, 1_u64..4), 1..12),
        at in 250_u64..2000,
    ) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        // All that happens happens at even milliseconds, so who looks at odd ones looks between.
        let callers = callers.into_iter().map(|(comes, stays, cost)| (2 * comes, 2 * stays, cost));
        let looked = counted_and_had(callers.collect(), 2 * at + 1);
        let (counted, had) = runtime.block_on(looked);
        prop_assert_eq!(counted, had);
    }
}

#[tokio::test(start_paused = true)]
async fn over_memory_a_dropped_acquire_takes_nothing() {
    let limiter = limiter(per_century(2));
    drop(limiter.acquire());
    limiter.acquire_many(2).await.unwrap();
    for wait in [0, 1, 1000, 1_000_000] {
        let waited = timeout(Duration::from_millis(wait), limiter.acquire()).await;
        assert!(waited.is_err(), "there is no room for a century");
    }
    assert_eq!(limiter.counts().waiting, 0);
    limiter.reset().await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(limiter.stats().await.unwrap().count, 0);
}

/// The server has taken, and its answer is on the way when the caller goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_redis_what_was_taken_for_nobody_is_given_back() {
    let (server, prefix) = (redis(), "drops:");
    let proxy = Proxy::start(server.port());
    let behind = NamedLimiter::new(patient(&proxy.url(), prefix), per_century(10));
    let beside = NamedLimiter::new(patient(&server.url(), prefix), per_century(10));
    behind.acquire().await.unwrap();
    proxy.set(Fault::Delay(MAX_WAIT));
    let held = tokio::spawn({
        let behind = behind.clone();
        async move { behind.acquire_many(5).await }
    });
    counts(&beside, 6).await;
    held.abort();
    assert!(held.await.unwrap_err().is_cancelled(), "the answer was still on its way");
    assert_eq!(beside.stats().await.unwrap().count, 6);
    proxy.set(Fault::Pass);
    counts(&beside, 1).await;
    assert_eq!(behind.counts().acquired, 1);
}

/// Waits until the server counts so many.
async fn counts(limiter: &NamedLimiter<tollgate_redis::RedisStore>, count: u64) {
    let began = std::time::Instant::now();
    while limiter.stats().await.unwrap().count != count {
        assert!(began.elapsed() < MAX_WAIT, "still not {count}");
        tokio::task::block_in_place(pause);
    }
}
