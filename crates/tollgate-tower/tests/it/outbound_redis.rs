//! Limiters over a real Redis: shared by those who ask, and honest about its failures.

use std::time::Duration;

use tollgate::{Inline, Limit, Limiter, Policy, Query, Quota, Verb};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Server};
use tollgate_tower::outbound::{AcquireError, NamedLimiter};

use crate::outbound_fixture::{patient, per, per_century, redis, refusal};

/// What the service does with `{"key":K,"limits":[…]}` counts in the same place.
#[tokio::test]
async fn a_limiter_and_a_request_with_its_own_limits_share_a_quota() {
    let hour = Duration::from_secs(3600);
    let limiter = NamedLimiter::new(patient(&redis().url(), "inline:"), per(4, hour));
    limiter.acquire_many(3).await.unwrap();
    let service = Limiter::new(patient(&redis().url(), "inline:"), Policy::builtin());
    let limit = Limit::sliding_window(Quota::new(4, hour)).unwrap();
    let asked = Query::Inline(Inline::new("", "igdb:api", vec![limit], 1).unwrap());
    let told = service.decide(Verb::Take, &asked, |outcome| {
        (outcome.decision.is_allowed(), outcome.decision.remaining())
    });
    assert_eq!(told.await.unwrap(), (true, Some(0)));
    assert!(refusal(limiter.try_acquire().await).1.is_some_and(|wait| wait <= hour));
    let keys = redis().raw().call(&["KEYS", "inline:*"]);
    assert_eq!(keys.array().len(), 1, "{keys:?}");
}

/// Nobody has the last one twice, though many ask at once.
#[tokio::test]
async fn callers_at_once_have_exactly_the_quota() {
    let limits = || per_century(20).immediate();
    let one = NamedLimiter::new(patient(&redis().url(), "exact:"), limits());
    let two = NamedLimiter::new(patient(&redis().url(), "exact:"), limits());
    let callers = (0..60).map(|nth| {
        let limiter = if nth % 2 == 0 { one.clone() } else { two.clone() };
        tokio::spawn(async move { limiter.acquire().await.is_ok() })
    });
    let mut had = 0;
    for caller in callers.collect::<Vec<_>>() {
        had += u64::from(caller.await.unwrap());
    }
    assert_eq!(had, 20);
    assert_eq!(one.counts().refused + two.counts().refused, 40);
    one.reset().await.unwrap();
    assert_eq!(two.stats().await.unwrap().count, 0);
}

#[tokio::test]
async fn a_server_that_is_gone_and_one_that_hangs_are_different_errors() {
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
    // The end of the old connection may be noticed by the first who asks.
    let error = loop {
        match limiter.acquire().await.unwrap_err() {
            AcquireError::Timeout(_) => {}
            other => break other,
        }
    };
    assert!(matches!(error, AcquireError::Unavailable(_)) && error.is_transient(), "{error:?}");
}
