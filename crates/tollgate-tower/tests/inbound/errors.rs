//! A limiter that cannot decide.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use http::{Request, Response};
use tollgate::{FallbackStore, Limiter, LimiterError, MemoryStore, Policy, Store};
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_tower::{Counting, Header, OnError, RateLimitLayer, RateLimitLayerBuilder};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::fixture::{Served, ask, get, one, policy};

fn served<S: Store + 'static>(builder: RateLimitLayerBuilder<S>) -> Served {
    let client = Header::from_static("x-client-id");
    let service = service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::from("hello")))
    });
    BoxCloneSyncService::new(builder.fact("client", client).build().layer(service))
}

fn lost() -> FaultyStore<MemoryStore> {
    let store = FaultyStore::new(MemoryStore::new());
    store.set(StoreFault::Unreachable);
    store
}

#[tokio::test]
async fn requests_pass_unless_said_otherwise() {
    let heard = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&heard);
    let builder = RateLimitLayer::builder(Limiter::new(lost(), one("1/min")));
    let service = served(builder.on_error_notify(move |error| {
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
    let builder = RateLimitLayer::builder(Limiter::new(lost(), one("1/min")));
    let service = served(builder.on_error(OnError::Refuse));
    let refused = ask(&service, get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let body: serde_json::Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!((&body["allowed"], &body["degraded"]), (&false.into(), &true.into()));
}

#[tokio::test]
async fn with_a_fallback_limits_hold_without_the_store() {
    let limiter = Limiter::new(FallbackStore::builder(lost()).build(), one("2/min"));
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
    let limiter = Limiter::new(FallbackStore::builder(lost()).build(), policy);
    let refused = ask(&served(RateLimitLayer::builder(limiter)), get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 503);
    assert!(refused.header("retry-after").is_some());
}

#[tokio::test]
async fn what_cannot_be_decided_goes_to_the_hook_too() {
    let builder = RateLimitLayer::builder(Limiter::new(lost(), one("1/min")));
    let builder = builder.on_error(OnError::Refuse).expose_headers().on_refusal(|refused| {
        let mut response = refused.response();
        response.headers_mut().insert("x-rule", refused.rule().len().into());
        response
    });
    let refused = ask(&served(builder), get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 503);
    assert_eq!(refused.header("x-rule"), Some("0"));
    assert!(refused.header("access-control-expose-headers").is_some());
}

/// Nobody passes by making more rules match than can be counted at once.
#[tokio::test]
async fn more_limits_than_a_plan_holds_refuse() {
    let rule = |nth: usize| {
        let limits: Vec<String> = (1..=9).map(|count| format!("{count}/min")).collect();
        let limits = limits.join(", ");
        format!("  - {{ name: r{nth}, limits: [{limits}], continue: true }}\n")
    };
    let policy = policy(&format!("{}{}", rule(1), rule(2)));
    let builder = RateLimitLayer::builder(Limiter::new(MemoryStore::new(), policy));
    assert_eq!(ask(&served(builder), get("/", "c1")).await.status.as_u16(), 503);
}

/// A service that fails has no response, and is counted as a failure.
#[tokio::test]
async fn a_failed_service_counts_as_a_failure() {
    let limiter = Limiter::new(MemoryStore::new(), one("1/min"));
    let builder =
        RateLimitLayer::builder(limiter).fact("client", Header::from_static("x-client-id"));
    let layer = builder.count_only(Counting::Successes).build();
    let failing = service_fn(async |_: Request<Body>| Err::<Response<Body>, _>("down"));
    for _ in 0..3 {
        let mut service = layer.layer(failing);
        let failed = service.ready().await.unwrap().call(get("/", "c1")).await;
        assert_eq!(failed.map(|_| ()), Err("down"), "it was given back, so it is called again");
    }
}
