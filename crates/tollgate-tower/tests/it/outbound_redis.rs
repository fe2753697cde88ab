//! Outbound limiters over a real Redis: shared quota and error mapping.

use std::time::Duration;

use tollgate::{Inline, Limit, Limiter, Policy, Query, Quota, Verb};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Server};
use tollgate_tower::outbound::{AcquireError, NamedLimiter};

use crate::outbound_fixture::{per, per_century, redis, redis_store, refusal};

/// An inline limit `{"key":K,"limits":[…]}` of the service uses the same counter.
#[tokio::test]
async fn limiter_and_inline_limit_share_a_quota() {
    let hour = Duration::from_secs(3600);
    let limiter = NamedLimiter::new(redis_store(&redis().url(), "inline:"), per(4, hour));
    limiter.acquire_many(3).await.unwrap();
    let service = Limiter::new(redis_store(&redis().url(), "inline:"), Policy::builtin());
    let limit = Limit::sliding_window(Quota::new(4, hour)).unwrap();
    let query = Query::Inline(Inline::new("", "igdb:api", vec![limit], 1).unwrap());
    let result = service.decide(Verb::Take, &query, |outcome| {
        (outcome.decision.is_allowed(), outcome.decision.remaining())
    });
    assert_eq!(result.await.unwrap(), (true, Some(0)));
    assert!(refusal(limiter.try_acquire().await).1.is_some_and(|wait| wait <= hour));
    let keys = redis().raw().call(&["KEYS", "inline:*"]);
    assert_eq!(keys.array().len(), 1, "{keys:?}");
}

#[tokio::test]
async fn concurrent_callers_acquire_exactly_the_quota() {
    let limits = || per_century(20).immediate();
    let one = NamedLimiter::new(redis_store(&redis().url(), "exact:"), limits());
    let two = NamedLimiter::new(redis_store(&redis().url(), "exact:"), limits());
    let callers = (0..60).map(|nth| {
        let limiter = if nth % 2 == 0 { one.clone() } else { two.clone() };
        tokio::spawn(async move { limiter.acquire().await.is_ok() })
    });
    let mut acquired = 0;
    for caller in callers.collect::<Vec<_>>() {
        acquired += u64::from(caller.await.unwrap());
    }
    assert_eq!(acquired, 20);
    assert_eq!(one.counts().refused + two.counts().refused, 40);
    one.reset().await.unwrap();
    assert_eq!(two.stats().await.unwrap().count, 0);
}

#[tokio::test]
async fn killed_and_hanging_servers_are_different_errors() {
    let server = Server::start(Flavor::Redis);
    let connected = RedisStore::builder(server.url().parse().unwrap());
    let limiter =
        NamedLimiter::new(connected.timeout(Duration::from_millis(300)).build(), per_century(9));
    while limiter.peek().await.is_err() {
        // The first connection may take longer on a busy machine.
    }
    server.hang();
    let error = limiter.acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Timeout(_)) && error.is_transient(), "{error:?}");
    server.resume();
    server.kill();
    // The first call may time out on the old connection.
    let error = loop {
        match limiter.acquire().await.unwrap_err() {
            AcquireError::Timeout(_) => {}
            other => break other,
        }
    };
    assert!(matches!(error, AcquireError::Unavailable(_)) && error.is_transient(), "{error:?}");
}
