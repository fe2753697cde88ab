//! A limiter that cannot decide.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use http::{Request, Response};
use tollgate::{FallbackStore, Limiter, LimiterError, MemoryStore, Policy, Store};
use tollgate_testkit::faulty::{Faulty, Trouble};
use tollgate_tower::{Header, OnError, RateLimitLayer, RateLimitLayerBuilder};
use tower::util::BoxCloneService;
use tower::{Layer, service_fn};

use crate::fixture::{Served, ask, get, one, policy};

fn served<S: Store + 'static>(builder: RateLimitLayerBuilder<S>) -> Served {
    let client = Header::from_static("x-client-id");
    let service = service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::from("hello")))
    });
    BoxCloneService::new(builder.fact("client", client).build().layer(service))
}

fn lost() -> Faulty<MemoryStore> {
    let store = Faulty::new(MemoryStore::new());
    store.set(Trouble::Unreachable);
    store
}

#[tokio::test]
async fn requests_pass_unless_said_otherwise() {
    let heard = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&heard);
    let builder = RateLimitLayer::builder(Limiter::new(lost(), one("1/min"), ()));
    let service = served(builder.on_error_hear(move |error| {
        assert!(matches!(error, LimiterError::Store(_)), "{error:?}");
        count.fetch_add(1, Ordering::Relaxed);
    }));
    for _ in 0..3 {
        let answer = ask(&service, get("/", "c1")).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "hello"));
        assert_eq!(answer.header("x-ratelimit-limit"), None);
    }
    assert_eq!(heard.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn or_are_refused_for_a_second() {
    let builder = RateLimitLayer::builder(Limiter::new(lost(), one("1/min"), ()));
    let service = served(builder.on_error(OnError::Refuse));
    let refused = ask(&service, get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let body: serde_json::Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!((&body["allowed"], &body["degraded"]), (&false.into(), &true.into()));
}

#[tokio::test]
async fn with_a_fallback_limits_hold_without_the_store() {
    let limiter = Limiter::new(FallbackStore::builder(lost()).build(), one("2/min"), ());
    let service = served(RateLimitLayer::builder(limiter));
    for (status, left) in [(200, "1"), (200, "0"), (429, "0")] {
        let answer = ask(&service, get("/", "c1")).await;
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(answer.header("x-ratelimit-remaining"), Some(left));
    }
}

#[tokio::test]
async fn a_rule_that_denies_without_its_store_answers_503() {
    let policy: Policy = policy("  - { name: pay, limits: [2/min], on_store_loss: deny }");
    let limiter = Limiter::new(FallbackStore::builder(lost()).build(), policy, ());
    let refused = ask(&served(RateLimitLayer::builder(limiter)), get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 503);
    assert!(refused.header("retry-after").is_some());
}
