//! A dropped acquire takes nothing.

use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};
use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::wait::{MAX_WAIT, pause};
use tollgate_tower::outbound::NamedLimiter;

use crate::outbound_fixture::{SECOND, limiter, per, per_century, redis, redis_store};

/// Arrival time and maximum stay of a caller in milliseconds, and its cost.
type Caller = (u64, u64, u64);

/// Returns the usage at a time, and the amount that callers acquired in the window before it.
async fn usage_and_acquired(callers: Vec<Caller>, at: u64) -> (u64, u64) {
    let (limiter, start) = (limiter(per(3, SECOND)), Instant::now());
    let callers = callers.into_iter().map(|(arrival, stay, cost)| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(arrival)).await;
            let acquired = timeout(Duration::from_millis(stay), limiter.acquire_many(cost)).await;
            acquired.is_ok_and(|acquired| acquired.is_ok()).then(|| (start.elapsed(), cost))
        })
    });
    let callers: Vec<_> = callers.collect();
    sleep(Duration::from_millis(at)).await;
    let (now, usage) = (start.elapsed(), limiter.stats().await.unwrap().count);
    let mut acquired_amount = 0;
    for caller in callers {
        if let Some((then, cost)) = caller.await.unwrap()
            && then <= now
            && then + SECOND > now
        {
            acquired_amount += cost;
        }
    }
    (usage, acquired_amount)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn memory_usage_equals_acquired_amount(
        callers in prop::collection::vec((0_u64..1000, 0_u64..1500, 1_u64..4), 1..12),
        at in 250_u64..2000,
    ) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        // Events happen at even milliseconds, so reading at an odd one is unambiguous.
        let callers = callers.into_iter().map(|(arrival, stay, cost)| (2 * arrival, 2 * stay, cost));
        let result = usage_and_acquired(callers.collect(), 2 * at + 1);
        let (usage, acquired_amount) = runtime.block_on(result);
        prop_assert_eq!(usage, acquired_amount);
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_acquire_takes_nothing_in_memory() {
    let limiter = limiter(per_century(2));
    drop(limiter.acquire());
    limiter.acquire_many(2).await.unwrap();
    for wait in [0, 1, 1000, 1_000_000] {
        let waited = timeout(Duration::from_millis(wait), limiter.acquire()).await;
        assert!(waited.is_err(), "no quota is left for a century");
    }
    assert_eq!(limiter.counts().waiting, 0);
    limiter.reset().await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(limiter.stats().await.unwrap().count, 0);
}

/// The caller is dropped after the server took the quota and before its reply arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn take_for_dropped_caller_is_refunded_in_redis() {
    let (server, prefix) = (redis(), "drops:");
    let proxy = Proxy::start(server.port());
    let proxied = NamedLimiter::new(redis_store(&proxy.url(), prefix), per_century(10));
    let direct = NamedLimiter::new(redis_store(&server.url(), prefix), per_century(10));
    proxied.acquire().await.unwrap();
    proxy.set(Fault::Delay(MAX_WAIT));
    let held = tokio::spawn({
        let proxied = proxied.clone();
        async move { proxied.acquire_many(5).await }
    });
    wait_for_usage(&direct, 6).await;
    held.abort();
    assert!(held.await.unwrap_err().is_cancelled(), "the reply had not arrived");
    assert_eq!(direct.stats().await.unwrap().count, 6);
    proxy.set(Fault::Pass);
    wait_for_usage(&direct, 1).await;
    assert_eq!(proxied.counts().acquired, 1);
}

/// Waits until the server reports this usage.
async fn wait_for_usage(limiter: &NamedLimiter<tollgate_redis::RedisStore>, count: u64) {
    let start = std::time::Instant::now();
    while limiter.stats().await.unwrap().count != count {
        assert!(start.elapsed() < MAX_WAIT, "usage did not become {count}");
        tokio::task::block_in_place(pause);
    }
}
