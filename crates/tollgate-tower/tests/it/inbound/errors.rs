//! Limiters that cannot decide.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use http::{Request, Response};
use tollgate::{FallbackStore, Limiter, LimiterError, MemoryStore, Policy, Store};
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_tower::{
    CountedResponses, ErrorAction, Header, RateLimitLayer, RateLimitLayerBuilder,
};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::inbound::fixture::{Served, get, policy, send, single_limit};

fn served<S: Store + 'static>(builder: RateLimitLayerBuilder<S>) -> Served {
    let client = Header::from_static("x-client-id");
    let service = service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::from("hello")))
    });
    BoxCloneSyncService::new(builder.fact("client", client).build().layer(service))
}

fn unreachable_store() -> FaultyStore<MemoryStore> {
    let store = FaultyStore::new(MemoryStore::new());
    store.set(StoreFault::Unreachable);
    store
}

#[tokio::test]
async fn undecided_requests_pass_by_default() {
    let reported = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&reported);
    let builder = RateLimitLayer::builder(Limiter::new(unreachable_store(), single_limit("1/min")));
    let service = served(builder.on_error(move |error| {
        assert!(matches!(error, LimiterError::Store(_)), "{error:?}");
        count.fetch_add(1, Ordering::Relaxed);
    }));
    for _ in 0..3 {
        let response = send(&service, get("/", "c1")).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, "hello"));
        assert_eq!(response.header("x-ratelimit-limit"), None);
    }
    assert_eq!(reported.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn undecided_requests_can_be_refused_with_503() {
    let builder = RateLimitLayer::builder(Limiter::new(unreachable_store(), single_limit("1/min")));
    let service = served(builder.error_action(ErrorAction::Refuse));
    let refused = send(&service, get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let body: serde_json::Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!((&body["allowed"], &body["degraded"]), (&false.into(), &true.into()));
}

#[tokio::test]
async fn fallback_enforces_limits_without_the_store() {
    let limiter =
        Limiter::new(FallbackStore::builder(unreachable_store()).build(), single_limit("2/min"));
    let service = served(RateLimitLayer::builder(limiter));
    for (status, remaining) in [(200, "1"), (200, "0"), (429, "0")] {
        let response = send(&service, get("/", "c1")).await;
        assert_eq!(response.status.as_u16(), status);
        assert_eq!(response.header("x-ratelimit-remaining"), Some(remaining));
    }
}

#[tokio::test]
async fn rule_with_on_store_loss_deny_responds_503() {
    let policy: Policy = policy("  - { name: pay, limits: [2/min], on_store_loss: deny }");
    let limiter = Limiter::new(FallbackStore::builder(unreachable_store()).build(), policy);
    let refused = send(&served(RateLimitLayer::builder(limiter)), get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 503);
    assert!(refused.header("retry-after").is_some());
}

/// The store still counts, so that no setting passes a shed request on.
#[tokio::test]
async fn overloaded_requests_are_shed() {
    for action in [ErrorAction::Allow, ErrorAction::Refuse] {
        let store = FaultyStore::new(MemoryStore::new());
        store.set(StoreFault::Overloaded);
        let policy = policy("  - { name: pay, limits: [2/min], on_store_loss: allow }");
        let limiter = Limiter::new(FallbackStore::builder(store).build(), policy);
        let service = served(RateLimitLayer::builder(limiter).error_action(action));
        let shed = send(&service, get("/", "c1")).await;
        assert_eq!((shed.status.as_u16(), shed.header("retry-after")), (503, Some("1")));
        let body: serde_json::Value = serde_json::from_slice(&shed.body).unwrap();
        assert_eq!((&body["allowed"], &body["reason"]), (&false.into(), &"overloaded".into()));
    }
}

#[tokio::test]
async fn undecided_refusals_use_the_refusal_callback() {
    let builder = RateLimitLayer::builder(Limiter::new(unreachable_store(), single_limit("1/min")));
    let builder =
        builder.error_action(ErrorAction::Refuse).expose_headers().on_refusal(|refused| {
            let mut response = refused.response();
            response.headers_mut().insert("x-rule", refused.rule().len().into());
            response
        });
    let refused = send(&served(builder), get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 503);
    assert_eq!(refused.header("x-rule"), Some("0"));
    assert!(refused.header("access-control-expose-headers").is_some());
}

/// A client cannot bypass limits by matching more rules than one plan holds.
#[tokio::test]
async fn refuses_more_limits_than_a_plan_holds() {
    let rule = |nth: usize| {
        let limits: Vec<String> = (1..=9).map(|count| format!("{count}/min")).collect();
        let limits = limits.join(", ");
        format!("  - {{ name: r{nth}, limits: [{limits}], continue: true }}\n")
    };
    let policy = policy(&format!("{}{}", rule(1), rule(2)));
    let builder = RateLimitLayer::builder(Limiter::new(MemoryStore::new(), policy));
    assert_eq!(send(&served(builder), get("/", "c1")).await.status.as_u16(), 503);
}

#[tokio::test]
async fn service_error_counts_as_failure() {
    let limiter = Limiter::new(MemoryStore::new(), single_limit("1/min"));
    let builder =
        RateLimitLayer::builder(limiter).fact("client", Header::from_static("x-client-id"));
    let layer = builder.count_responses(CountedResponses::Successes).build();
    let failing = service_fn(async |_: Request<Body>| Err::<Response<Body>, _>("down"));
    for _ in 0..3 {
        let mut service = layer.layer(failing);
        let failed = service.ready().await.unwrap().call(get("/", "c1")).await;
        assert_eq!(
            failed.map(|_| ()),
            Err("down"),
            "the cost was refunded, so the service is called again"
        );
    }
}
