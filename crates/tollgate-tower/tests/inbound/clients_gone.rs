//! Clients that go away while the store is still being asked.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use http::{Request, Response, StatusCode};
use tollgate::{Limiter, Policy};
use tollgate_tower::{Header, RateLimitLayer, RateLimitLayerBuilder};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::fixture::{Served, ask, get, one, policy};
use crate::later::Later;

/// A service behind such a store, and how often it was called.
fn served(
    store: &Later,
    policy: Policy,
    configure: impl FnOnce(RateLimitLayerBuilder<Later>) -> RateLimitLayerBuilder<Later>,
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

/// Asks, looks once, and goes away.
async fn ask_and_go(service: &Served) {
    let mut service = service.clone();
    let mut call = service.ready().await.unwrap().call(get("/", "c1"));
    let looked = std::future::poll_fn(|context| {
        std::task::Poll::Ready(call.as_mut().poll(context).is_pending())
    });
    assert!(looked.await, "the store has not answered");
}

/// Lets tasks that nobody waits for come to their end.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_service_is_called_when_the_store_has_answered() {
    let store = Later::default();
    let (service, calls) = served(&store, one("5/min"), |builder| builder);
    let asking = tokio::spawn({
        let service = service.clone();
        async move { ask(&service, get("/", "c1")).await }
    });
    settle().await;
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    store.answer(1);
    let answer = asking.await.unwrap();
    assert_eq!((answer.status, answer.text()), (StatusCode::OK, "hello"));
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("4"));
}

#[tokio::test]
async fn a_slot_that_was_being_taken_for_them_is_given_back() {
    let store = Later::default();
    let rules = policy("  - { name: exports, limits: [{ concurrency: 1, ttl: 3600s }] }");
    let (service, calls) = served(&store, rules, |builder| builder);
    ask_and_go(&service).await;
    store.answer_all();
    settle().await;
    let answer = ask(&service, get("/", "c1")).await;
    assert_eq!(answer.status, StatusCode::OK, "the slot is free again");
    assert_eq!(calls.load(Ordering::Relaxed), 1, "who was gone was not served");
    settle().await;
    assert_eq!(ask(&service, get("/", "c1")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn what_is_given_back_for_them_is_given_back() {
    let store = Later::default();
    let (service, _) = served(&store, one("1/min"), |builder| {
        builder.count_where(|response| response.status != StatusCode::OK)
    });
    store.answer(1);
    // The take is answered at once, the refund is not.
    ask_and_go(&service).await;
    store.answer_all();
    settle().await;
    assert_eq!(ask(&service, get("/", "c1")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn who_goes_before_it_is_known_what_it_cost_pays_one() {
    let store = Later::default();
    store.answer_all();
    let never = service_fn(async |_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>().await
    });
    let limiter = Limiter::new(store.clone(), one("10/min"));
    let builder =
        RateLimitLayer::builder(limiter).fact("client", Header::from_static("x-client-id"));
    let layer = builder.charge_by_size(|bytes| bytes).build();
    let endless: Served = BoxCloneSyncService::new(layer.layer(never));
    ask_and_go(&endless).await;
    settle().await;
    let hello = service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::from("six by")))
    });
    let service: Served = BoxCloneSyncService::new(layer.layer(hello));
    assert_eq!(ask(&service, get("/", "c1")).await.header("x-ratelimit-remaining"), Some("3"));
}
