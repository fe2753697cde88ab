//! Slots are held while a request is served, and returned when its body ends or its client goes away.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::fixture::{Served, ask, begin, by_client, get, hello, policy};

fn two_at_once() -> tollgate::Policy {
    policy("  - { name: exports, limits: [{ concurrency: 2, ttl: 30s }] }")
}

#[tokio::test]
async fn a_slot_returns_when_the_body_ends() {
    let (builder, _) = by_client(two_at_once());
    let service = hello(builder);
    let first = begin(&service, get("/", "c1")).await;
    let second = begin(&service, get("/", "c1")).await;
    assert_eq!(first.headers()["x-ratelimit-remaining"], "1");
    assert_eq!(second.headers()["x-ratelimit-remaining"], "0");
    let refused = ask(&service, get("/", "c1")).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, Some("30")));
    assert_eq!(ask(&service, get("/", "c2")).await.status.as_u16(), 200);
    first.into_body().collect().await.unwrap();
    assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 200);
    drop(second);
}

#[tokio::test]
async fn a_slot_returns_when_the_client_goes_away() {
    let (builder, _) = by_client(two_at_once());
    let service = hello(builder);
    let unread = [begin(&service, get("/", "c1")).await, begin(&service, get("/", "c1")).await];
    assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 429);
    drop(unread);
    assert_eq!(ask(&service, get("/", "c1")).await.header("x-ratelimit-remaining"), Some("1"));
}

/// A service that answers nobody.
fn endless(builder: tollgate_tower::RateLimitLayerBuilder<crate::fixture::Store>) -> Served {
    let never = Arc::new(Semaphore::new(0));
    let service = service_fn(move |_: Request<Body>| {
        let never = Arc::clone(&never);
        async move {
            let _ = never.acquire().await;
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }
    });
    BoxCloneSyncService::new(builder.build().layer(service))
}

#[tokio::test]
async fn a_slot_returns_when_the_client_does_not_wait_for_the_response() {
    let (builder, _) =
        by_client(policy("  - { name: exports, limits: [{ concurrency: 1, ttl: 30s }] }"));
    let service = endless(builder);
    for _ in 0..3 {
        let mut service = service.clone();
        let mut call = service.ready().await.unwrap().call(get("/", "c1"));
        // One look lets it in; then the client is gone.
        let waiting = tokio::time::timeout(Duration::ZERO, &mut call).await;
        assert!(waiting.is_err(), "a slot was free, so it is being served: {waiting:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_kept_for_as_long_as_it_takes() {
    let (builder, clock) = by_client(two_at_once());
    let service = hello(builder);
    let held = [begin(&service, get("/", "c1")).await, begin(&service, get("/", "c1")).await];
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        clock.advance(Duration::from_secs(5));
    }
    assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 429);
    drop(held);
    assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 200);
}
