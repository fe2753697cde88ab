//! Clients that disconnect while the store has not replied.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use http::{Request, Response, StatusCode};
use tollgate::{Limiter, Policy};
use tollgate_tower::{Header, RateLimitLayer, RateLimitLayerBuilder};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::inbound::delayed_store::DelayedStore;
use crate::inbound::fixture::{Served, get, policy, send, single_limit};

/// Creates a service behind a delayed store, and a counter of its calls.
fn served(
    store: &DelayedStore,
    policy: Policy,
    configure: impl FnOnce(RateLimitLayerBuilder<DelayedStore>) -> RateLimitLayerBuilder<DelayedStore>,
) -> (Served, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let service = service_fn(move |_: Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Infallible>(Response::new(Body::from("hello"))) }
    });
    let builder = RateLimitLayer::builder(Limiter::new(store.clone(), policy));
    let builder = builder.fact("client", Header::from_static("x-client-id"));
    (BoxCloneSyncService::new(configure(builder).build().layer(service)), calls)
}

/// Sends a request, polls it once and drops it.
async fn send_and_disconnect(service: &Served) {
    let mut service = service.clone();
    let mut call = service.ready().await.unwrap().call(get("/", "c1"));
    let is_pending = std::future::poll_fn(|context| {
        std::task::Poll::Ready(call.as_mut().poll(context).is_pending())
    });
    assert!(is_pending.await, "the store has not replied");
}

/// Lets background tasks finish.
async fn run_background_tasks() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn calls_service_after_the_store_replied() {
    let store = DelayedStore::default();
    let (service, calls) = served(&store, single_limit("5/min"), |builder| builder);
    let pending = tokio::spawn({
        let service = service.clone();
        async move { send(&service, get("/", "c1")).await }
    });
    run_background_tasks().await;
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    store.release_replies(1);
    let response = pending.await.unwrap();
    assert_eq!((response.status, response.text()), (StatusCode::OK, "hello"));
    assert_eq!(response.header("x-ratelimit-remaining"), Some("4"));
}

#[tokio::test]
async fn slot_granted_after_disconnect_is_released() {
    let store = DelayedStore::default();
    let rules = policy("  - { name: exports, limits: [{ concurrency: 1, ttl: 3600s }] }");
    let (service, calls) = served(&store, rules, |builder| builder);
    send_and_disconnect(&service).await;
    store.release_all();
    run_background_tasks().await;
    let response = send(&service, get("/", "c1")).await;
    assert_eq!(response.status, StatusCode::OK, "the slot is free again");
    assert_eq!(
        calls.load(Ordering::Relaxed),
        1,
        "the disconnected request did not reach the service"
    );
    run_background_tasks().await;
    assert_eq!(send(&service, get("/", "c1")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn refund_completes_after_disconnect() {
    let store = DelayedStore::default();
    let (service, _) = served(&store, single_limit("1/min"), |builder| {
        builder.count_responses_if(|response| response.status != StatusCode::OK)
    });
    store.release_replies(1);
    // The reply to the take is released, that to the refund is not.
    send_and_disconnect(&service).await;
    store.release_all();
    run_background_tasks().await;
    assert_eq!(send(&service, get("/", "c1")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn disconnect_before_cost_is_known_costs_one() {
    let store = DelayedStore::default();
    store.release_all();
    let never = service_fn(async |_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>().await
    });
    let limiter = Limiter::new(store.clone(), single_limit("10/min"));
    let builder =
        RateLimitLayer::builder(limiter).fact("client", Header::from_static("x-client-id"));
    let layer = builder.charge_by_size(|bytes| bytes).build();
    let endless: Served = BoxCloneSyncService::new(layer.layer(never));
    send_and_disconnect(&endless).await;
    run_background_tasks().await;
    let hello = service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::from("six by")))
    });
    let service: Served = BoxCloneSyncService::new(layer.layer(hello));
    assert_eq!(send(&service, get("/", "c1")).await.header("x-ratelimit-remaining"), Some("3"));
}
