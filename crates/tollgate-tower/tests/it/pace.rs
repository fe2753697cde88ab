//! A tower client that waits for its limiter, and learns.

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

use crate::outbound_distant::{Distant, poll_and_drop};
use crate::outbound_fixture::{
    SECOND, TICK, limiter, memory, patient, per_century, per_second, redis, refusal,
};

/// Another side that answers like this, and how often it was asked.
fn upstream(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
) -> (
    impl Service<Request<()>, Response = Response<&'static str>, Error = Infallible, Future: Send>
    + Clone
    + Send,
    Arc<AtomicU64>,
) {
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let service = service_fn(move |_: Request<()>| {
        count.fetch_add(1, Ordering::SeqCst);
        let answer =
            headers.iter().fold(Response::builder().status(status), |answer, (name, value)| {
                answer.header(*name, *value)
            });
        async move { Ok(answer.body("body").unwrap()) }
    });
    (service, asked)
}

#[tokio::test(start_paused = true)]
async fn requests_wait_in_their_call() {
    let (limiter, began) = (limiter(per_second(4)), Instant::now());
    let (service, asked) = upstream(200, &[("retry-after", "3000")]);
    let mut client = PaceLayer::new(limiter.clone()).layer(service);
    for _ in 0..5 {
        let answer = client.ready().await.unwrap().call(Request::new(())).await.unwrap();
        assert_eq!(*answer.body(), "body");
    }
    assert!((SECOND..=SECOND + TICK).contains(&began.elapsed()));
    assert_eq!((asked.load(Ordering::SeqCst), limiter.counts().waited), (5, 1));
    // A call that is dropped while it waits asks nobody and takes nothing.
    limiter.acquire_many(3).await.unwrap();
    let waiting = client.ready().await.unwrap().call(Request::new(()));
    assert!(tokio::time::timeout(SECOND / 2, waiting).await.is_err());
    assert_eq!((asked.load(Ordering::SeqCst), limiter.stats().await.unwrap().count), (5, 4));
}

#[tokio::test(start_paused = true)]
async fn refusals_of_the_limiter_can_be_had_back() {
    let limiter = limiter(per_second(1).immediate());
    let (service, asked) = upstream(200, &[]);
    let client = PaceLayer::new(limiter).layer(service);
    client.clone().oneshot(Request::new(())).await.unwrap();
    let error: BoxError = client.oneshot(Request::new(())).await.unwrap_err();
    assert_eq!(error.to_string(), "Rate limit exceeded for key 'igdb:api'");
    let error = error.downcast::<AcquireError>().unwrap();
    assert_eq!((error.retry_after(), asked.load(Ordering::SeqCst)), (Some(SECOND), 1));
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_no_longer_than_allowed() {
    for (longest, paused) in [(None, 3600), (Some(Duration::from_secs(20)), 20)] {
        let limiter = limiter(per_second(4));
        let (service, _) = upstream(503, &[("retry-after", "99999999999999999999999")]);
        let layer = PaceLayer::new(limiter.clone());
        let layer = longest.map_or(layer.clone(), |longest| layer.longest_pause(longest));
        let answer = layer.layer(service).oneshot(Request::new(())).await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        let wait = refusal(limiter.try_acquire().await).1;
        assert_eq!(wait, Some(Duration::from_secs(paused)));
    }
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_pauses_nothing() {
    for (status, headers) in [
        (429, &[("retry-after", "soon")][..]),
        (429, &[("retry-after", "-1"), ("ratelimit", "\"a\";r=0;t=x;")]),
        (429, &[]),
        (500, &[("retry-after", "30")]),
        (200, &[("ratelimit", "\"a\";r=0;t=30")]),
    ] {
        let limiter = limiter(per_second(4));
        let (service, _) = upstream(status, headers);
        let answer = PaceLayer::new(limiter.clone()).layer(service).oneshot(Request::new(())).await;
        assert_eq!(answer.unwrap().status(), status);
        assert_eq!(limiter.try_acquire().await.unwrap().remaining, 2, "{status} {headers:?}");
    }
}

#[tokio::test]
async fn a_pause_that_fails_does_not_lose_the_answer() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let limiter = NamedLimiter::new(Arc::clone(&store), per_second(4));
    // The take is answered, the pause is not.
    store.fail_after(1, StoreFault::Unreachable);
    let (service, asked) = upstream(429, &[("retry-after", "30")]);
    let answer = PaceLayer::new(limiter).layer(service).oneshot(Request::new(())).await.unwrap();
    assert_eq!((answer.status(), *answer.body()), (StatusCode::TOO_MANY_REQUESTS, "body"));
    // And nothing is tried again.
    assert_eq!((asked.load(Ordering::SeqCst), store.calls()), (1, 2));
}

/// Whoever has the answer of the other side tells it to the store, and may be gone before the store has heard.
#[tokio::test(start_paused = true)]
async fn a_pause_goes_on_though_its_caller_is_gone() {
    let mut ends = Vec::new();
    for times in 0..10 {
        let limiter = NamedLimiter::new(Distant(memory()), per_century(4));
        let (service, asked) = upstream(429, &[("retry-after", "30")]);
        let call = PaceLayer::new(limiter.clone()).layer(service).oneshot(Request::new(()));
        let is_answered = poll_and_drop(times, call).is_some();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let is_asked = asked.load(Ordering::SeqCst) == 1;
        let is_paused = limiter.peek().await.unwrap().retry_after == Some(30 * SECOND);
        assert_eq!(is_paused, is_asked, "polled {times} times");
        ends.push((is_asked, is_answered));
    }
    let (before, during, after) = ((false, false), (true, false), (true, true));
    assert_eq!(ends[..6], [before; 6]);
    assert_eq!(ends[6..], [during, during, after, after]);
}

/// The one that was refused tells the other, through Redis.
#[tokio::test]
async fn a_refusal_pauses_every_process() {
    let one = NamedLimiter::new(patient(&redis().url(), "paced:"), per_century(100));
    let two = NamedLimiter::new(patient(&redis().url(), "paced:"), per_century(100));
    two.acquire().await.unwrap();
    let (service, _) = upstream(429, &[("ratelimit", "\"burst\";r=0;t=3000")]);
    let answer = PaceLayer::new(one).layer(service).oneshot(Request::new(())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait = refusal(two.try_acquire().await).1.unwrap();
    assert!((2000..=3000).contains(&wait.as_secs()), "{wait:?}");
}
