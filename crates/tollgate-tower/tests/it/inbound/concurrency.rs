//! Slots are held while a request is served and released when its body ends or its client disconnects.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::inbound::fixture::{Served, get, hello, layer_by_client, policy, send, send_unread};

fn two_slots() -> tollgate::Policy {
    policy("  - { name: exports, limits: [{ concurrency: 2, ttl: 30s }] }")
}

#[tokio::test]
async fn slot_is_released_at_body_end() {
    let (builder, _) = layer_by_client(two_slots());
    let service = hello(builder);
    let first = send_unread(&service, get("/", "c1")).await;
    let second = send_unread(&service, get("/", "c1")).await;
    assert_eq!(first.headers()["x-ratelimit-remaining"], "1");
    assert_eq!(second.headers()["x-ratelimit-remaining"], "0");
    let refused = send(&service, get("/", "c1")).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, Some("30")));
    assert_eq!(send(&service, get("/", "c2")).await.status.as_u16(), 200);
    first.into_body().collect().await.unwrap();
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 200);
    drop(second);
}

#[tokio::test]
async fn slot_is_released_when_body_is_dropped() {
    let (builder, _) = layer_by_client(two_slots());
    let service = hello(builder);
    let unread =
        [send_unread(&service, get("/", "c1")).await, send_unread(&service, get("/", "c1")).await];
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 429);
    drop(unread);
    assert_eq!(send(&service, get("/", "c1")).await.header("x-ratelimit-remaining"), Some("1"));
}

/// A service that never responds.
fn endless(
    builder: tollgate_tower::RateLimitLayerBuilder<crate::inbound::fixture::Store>,
) -> Served {
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
async fn slot_is_released_when_client_disconnects_early() {
    let (builder, _) =
        layer_by_client(policy("  - { name: exports, limits: [{ concurrency: 1, ttl: 30s }] }"));
    let service = endless(builder);
    for _ in 0..3 {
        let mut service = service.clone();
        let mut call = service.ready().await.unwrap().call(get("/", "c1"));
        // The first poll admits the request; then the client disconnects.
        let waiting = tokio::time::timeout(Duration::ZERO, &mut call).await;
        assert!(waiting.is_err(), "a slot was free, so the service is running: {waiting:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn slot_is_renewed_while_the_response_is_open() {
    let (builder, clock) = layer_by_client(two_slots());
    let service = hello(builder);
    let held =
        [send_unread(&service, get("/", "c1")).await, send_unread(&service, get("/", "c1")).await];
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        clock.advance(Duration::from_secs(5));
    }
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 429);
    drop(held);
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 200);
}
