//! The paced tower client.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tokio::time::Instant;
use tollgate::MemoryStore;
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_tower::outbound::{AcquireError, NamedLimiter};
use tollgate_tower::pace::{BoxError, PaceLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::outbound_fixture::{
    SECOND, TICK, limiter, memory, per_century, per_second, redis, redis_store, refusal,
};
use crate::outbound_latency::{RemoteStore, poll_and_drop};

/// An upstream service with this response, and a counter of its calls.
fn upstream(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
) -> (
    impl Service<Request<()>, Response = Response<&'static str>, Error = Infallible, Future: Send>
    + Clone
    + Send,
    Arc<AtomicU64>,
) {
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let service = service_fn(move |_: Request<()>| {
        count.fetch_add(1, Ordering::SeqCst);
        let response =
            headers.iter().fold(Response::builder().status(status), |response, (name, value)| {
                response.header(*name, *value)
            });
        async move { Ok(response.body("body").unwrap()) }
    });
    (service, calls)
}

#[tokio::test(start_paused = true)]
async fn call_waits_for_the_limiter() {
    let (limiter, start) = (limiter(per_second(4)), Instant::now());
    let (service, calls) = upstream(200, &[("retry-after", "3000")]);
    let mut client = PaceLayer::new(limiter.clone()).layer(service);
    for _ in 0..5 {
        let response = client.ready().await.unwrap().call(Request::new(())).await.unwrap();
        assert_eq!(*response.body(), "body");
    }
    assert!((SECOND..=SECOND + TICK).contains(&start.elapsed()));
    assert_eq!((calls.load(Ordering::SeqCst), limiter.counts().waited), (5, 1));
    // A call that is dropped while it waits sends nothing and takes nothing.
    limiter.acquire_many(3).await.unwrap();
    let waiting = client.ready().await.unwrap().call(Request::new(()));
    assert!(tokio::time::timeout(SECOND / 2, waiting).await.is_err());
    assert_eq!((calls.load(Ordering::SeqCst), limiter.stats().await.unwrap().count), (5, 4));
}

#[tokio::test(start_paused = true)]
async fn limiter_error_can_be_downcast() {
    let limiter = limiter(per_second(1).immediate());
    let (service, calls) = upstream(200, &[]);
    let client = PaceLayer::new(limiter).layer(service);
    client.clone().oneshot(Request::new(())).await.unwrap();
    let error: BoxError = client.oneshot(Request::new(())).await.unwrap_err();
    assert_eq!(error.to_string(), "Rate limit exceeded for key 'igdb:api'");
    let error = error.downcast::<AcquireError>().unwrap();
    assert_eq!((error.retry_after(), calls.load(Ordering::SeqCst)), (Some(SECOND), 1));
}

#[tokio::test(start_paused = true)]
async fn pause_is_capped() {
    for (max, paused) in [(None, 3600), (Some(Duration::from_secs(20)), 20)] {
        let limiter = limiter(per_second(4));
        let (service, _) = upstream(503, &[("retry-after", "99999999999999999999999")]);
        let layer = PaceLayer::new(limiter.clone());
        let layer = max.map_or(layer.clone(), |max| layer.max_pause(max));
        let response = layer.layer(service).oneshot(Request::new(())).await.unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        let wait = refusal(limiter.try_acquire().await).1;
        assert_eq!(wait, Some(Duration::from_secs(paused)));
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_headers_do_not_pause() {
    for (status, headers) in [
        (429, &[("retry-after", "soon")][..]),
        (429, &[("retry-after", "-1"), ("ratelimit", "\"a\";r=0;t=x;")]),
        (429, &[]),
        (500, &[("retry-after", "30")]),
        (200, &[("ratelimit", "\"a\";r=0;t=30")]),
    ] {
        let limiter = limiter(per_second(4));
        let (service, _) = upstream(status, headers);
        let response =
            PaceLayer::new(limiter.clone()).layer(service).oneshot(Request::new(())).await;
        assert_eq!(response.unwrap().status(), status);
        assert_eq!(limiter.try_acquire().await.unwrap().remaining, 2, "{status} {headers:?}");
    }
}

#[tokio::test]
async fn failed_pause_does_not_lose_the_response() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let limiter = NamedLimiter::new(Arc::clone(&store), per_second(4));
    // The take succeeds, the pause fails.
    store.fail_after(1, StoreFault::Unreachable);
    let (service, calls) = upstream(429, &[("retry-after", "30")]);
    let response = PaceLayer::new(limiter).layer(service).oneshot(Request::new(())).await.unwrap();
    assert_eq!((response.status(), *response.body()), (StatusCode::TOO_MANY_REQUESTS, "body"));
    // Nothing is retried.
    assert_eq!((calls.load(Ordering::SeqCst), store.calls()), (1, 2));
}

/// The caller is dropped while the pause is being stored.
#[tokio::test(start_paused = true)]
async fn pause_completes_after_caller_is_dropped() {
    let mut results = Vec::new();
    for times in 0..10 {
        let limiter = NamedLimiter::new(RemoteStore(memory()), per_century(4));
        let (service, calls) = upstream(429, &[("retry-after", "30")]);
        let call = PaceLayer::new(limiter.clone()).layer(service).oneshot(Request::new(()));
        let is_answered = poll_and_drop(times, call).is_some();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let is_called = calls.load(Ordering::SeqCst) == 1;
        let is_paused = limiter.peek().await.unwrap().retry_after == Some(30 * SECOND);
        assert_eq!(is_paused, is_called, "polled {times} times");
        results.push((is_called, is_answered));
    }
    let (before, during, after) = ((false, false), (true, false), (true, true));
    assert_eq!(results[..6], [before; 6]);
    assert_eq!(results[6..], [during, during, after, after]);
}

/// The pause is shared through Redis.
#[tokio::test]
async fn refusal_pauses_every_process() {
    let one = NamedLimiter::new(redis_store(&redis().url(), "paced:"), per_century(100));
    let two = NamedLimiter::new(redis_store(&redis().url(), "paced:"), per_century(100));
    two.acquire().await.unwrap();
    let (service, _) = upstream(429, &[("ratelimit", "\"burst\";r=0;t=3000")]);
    let response = PaceLayer::new(one).layer(service).oneshot(Request::new(())).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait = refusal(two.try_acquire().await).1.unwrap();
    assert!((2000..=3000).contains(&wait.as_secs()), "{wait:?}");
}
