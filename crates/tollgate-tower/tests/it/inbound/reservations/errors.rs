//! Services and stores that fail while a request has a reservation, or before it.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};

use axum::body::Body;
use http::{Request, Response};
use tollgate::{Limiter, LimiterError, MemoryStore};
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_tower::{ErrorAction, RateLimitLayer};
use tower::{Layer, Service, service_fn};

use super::fixture::{AFTER_ESTIMATE, AFTER_FAILURE, estimate, llm_policy, remaining, reserving};
use super::fixture::{USED, WHILE_RESERVED};
use crate::inbound::fixture::{get, send};

#[tokio::test]
async fn an_error_of_the_service_is_a_failure() {
    let (builder, limiter) = reserving();
    let service = service_fn(async |_: Request<Body>| {
        Err::<Response<Body>, _>(io::Error::other("connection lost"))
    });
    let mut service = builder.settle_by_usage().build().layer(service);
    assert!(service.call(get("/", "c1")).await.is_err());
    assert_eq!(remaining(&limiter).await, AFTER_FAILURE);
}

#[tokio::test]
async fn a_disconnect_before_the_response_keeps_the_estimate() {
    let (builder, limiter) = reserving();
    let service = service_fn(async |_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>().await
    });
    let mut service = builder.settle_by_usage().build().layer(service);
    {
        let mut call = pin!(service.call(get("/", "c1")));
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        assert_eq!(remaining(&limiter).await, WHILE_RESERVED);
    }
    assert_eq!(remaining(&limiter).await, AFTER_ESTIMATE, "its slot is free");
}

/// The store fails, or has no reservations.
#[tokio::test]
async fn errors_of_the_store_follow_the_error_action() {
    for (action, status) in [(ErrorAction::Allow, 200), (ErrorAction::Refuse, 503)] {
        let store = FaultyStore::new(MemoryStore::new());
        store.set(StoreFault::Unreachable);
        let reported = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&reported);
        let limiter = Limiter::new(store, llm_policy());
        let builder = RateLimitLayer::builder(limiter).reserve(estimate).settle_by_usage();
        let builder = builder.error_action(action).on_error(move |error| {
            assert!(matches!(error, LimiterError::Store(_)), "{error:?}");
            count.fetch_add(1, Ordering::Relaxed);
        });
        let service = service_fn(async |_: Request<Body>| {
            Ok::<_, Infallible>(Response::new(Body::from(USED)))
        });
        let service = tower::util::BoxCloneSyncService::new(builder.build().layer(service));
        assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), status);
        assert_eq!(reported.load(Ordering::Relaxed), 1);
    }
}

/// The body ends, and is dropped after that.
#[tokio::test]
async fn a_request_is_settled_once_and_an_error_is_reported() {
    for fault in [StoreFault::None, StoreFault::Unreachable] {
        let store = FaultyStore::new(MemoryStore::new());
        store.fail_after(1, fault);
        let reported = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&reported);
        let builder = RateLimitLayer::builder(Limiter::new(store, llm_policy()));
        let builder = builder.reserve(estimate).settle_by_usage().on_error(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let layer = builder.build();
        let service = service_fn(async |_: Request<Body>| {
            Ok::<_, Infallible>(Response::new(Body::from(USED)))
        });
        let service = tower::util::BoxCloneSyncService::new(layer.layer(service));
        assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 200);
        assert_eq!(layer.limiter().store().calls(), 2, "a reservation and a settlement");
        let errors = u64::from(fault == StoreFault::Unreachable);
        assert_eq!(reported.load(Ordering::Relaxed), errors);
    }
}
