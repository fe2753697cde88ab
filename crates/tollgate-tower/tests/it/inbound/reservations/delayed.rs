//! A store that replies later than it decides.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use http::{Request, Response};
use tollgate::Limiter;
use tollgate_tower::{Header, RateLimitLayer};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::fixture::{AFTER_FAILURE, AFTER_USED, USED, estimate, json, llm_policy, remaining};
use crate::inbound::delayed_store::DelayedStore;
use crate::inbound::fixture::{Served, get, send};

fn served(store: &DelayedStore) -> (Served, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let service = service_fn(move |request: Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        let response: Response<Body> = json(200, USED)(&request);
        async { Ok::<_, Infallible>(response) }
    });
    let builder = RateLimitLayer::builder(Limiter::new(store.clone(), llm_policy()));
    let builder = builder.fact("client", Header::from_static("x-client-id"));
    let layer = builder.reserve(estimate).settle_by_usage().build();
    (BoxCloneSyncService::new(layer.layer(service)), calls)
}

async fn run_background_tasks() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_response_does_not_wait_for_its_settlement() {
    let store = DelayedStore::default();
    let (service, _) = served(&store);
    store.release_replies(1);
    // The reply to the reservation is released, that to the settlement is not.
    assert_eq!(send(&service, get("/", "c1")).await.text(), USED);
    store.release_all();
    let limiter = Limiter::new(store, llm_policy());
    assert_eq!(remaining(&limiter).await, AFTER_USED);
}

#[tokio::test]
async fn a_reservation_granted_after_a_disconnect_is_charged_for_requests_only() {
    let store = DelayedStore::default();
    let (service, calls) = served(&store);
    {
        let mut service = service.clone();
        let mut call = service.ready().await.unwrap().call(get("/", "c1"));
        let is_pending = std::future::poll_fn(|context| {
            std::task::Poll::Ready(call.as_mut().poll(context).is_pending())
        });
        assert!(is_pending.await, "the store has not replied");
    }
    store.release_all();
    run_background_tasks().await;
    assert_eq!(calls.load(Ordering::Relaxed), 0, "the request did not reach the service");
    assert_eq!(remaining(&Limiter::new(store, llm_policy())).await, AFTER_FAILURE);
}
