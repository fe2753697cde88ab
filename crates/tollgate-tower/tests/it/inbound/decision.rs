//! The decision in the request extensions.

use axum::body::Body;
use axum::routing::get as route;
use axum::{Extension, Router};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tollgate::{FallbackStore, Limiter, MemoryStore, Verdict};
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_tower::{Header, RateLimitDecision, RateLimitLayer, RateLimitLayerBuilder};
use tower::ServiceExt;

use crate::inbound::delayed_store::DelayedStore;
use crate::inbound::fixture::{get, layer_by_client, send, served, single_limit, ten_per_minute};

/// Describes the decision in the extensions of a request.
fn describe(request: &Request<Body>) -> String {
    let Some(decision) = request.extensions().get::<RateLimitDecision>() else {
        return "none".to_owned();
    };
    assert_eq!(decision.verdict(), Verdict::Allow);
    let limits = decision.statuses().map(|status| {
        let (name, limit) = (status.limit().name(), status.limit().capacity());
        let reset = status.reset_after().as_secs();
        format!("{name} {limit} {} {reset}", status.remaining())
    });
    let limits = limits.collect::<Vec<_>>().join(", ");
    let (rule, name) = (decision.rule(), decision.limit_name().unwrap_or_default());
    format!("{rule}/{name} {} degraded={}: {limits}", decision.key(), decision.is_degraded())
}

#[tokio::test]
async fn handler_reads_every_limit() {
    let (builder, _) = layer_by_client(ten_per_minute());
    let service =
        served(builder.expose_decision(), |request| Response::new(Body::from(describe(request))));
    let expected = [
        "api/60s c1 degraded=false: 60s 10 9 6, 3600s 100 99 36",
        "api/60s c1 degraded=false: 60s 10 8 12, 3600s 100 98 72",
    ];
    for text in expected {
        assert_eq!(send(&service, get("/", "c1")).await.text(), text);
    }
}

#[tokio::test]
async fn decision_is_not_exposed_by_default() {
    let (builder, _) = layer_by_client(ten_per_minute());
    let service = served(builder, |request| Response::new(Body::from(describe(request))));
    assert_eq!(send(&service, get("/", "c1")).await.text(), "none");
}

#[tokio::test]
async fn skipped_request_has_no_decision() {
    let (builder, _) = layer_by_client(ten_per_minute());
    let builder = builder.expose_decision().skip_path("/healthz");
    let service = served(builder, |request| Response::new(Body::from(describe(request))));
    assert_eq!(send(&service, get("/healthz", "c1")).await.text(), "none");
}

async fn respond<S: tollgate::Store + 'static>(
    builder: RateLimitLayerBuilder<S>,
    path: &str,
) -> (StatusCode, String) {
    async fn extension(Extension(decision): Extension<RateLimitDecision>) -> String {
        format!("{:?} degraded={}", decision.remaining(), decision.is_degraded())
    }
    async fn extractor(decision: RateLimitDecision) -> String {
        format!("{:?}", decision.remaining())
    }
    async fn optional(decision: Option<RateLimitDecision>) -> String {
        format!("{}", decision.is_some())
    }
    let layer = builder.fact("client", Header::from_static("x-client-id")).build();
    let app: Router = Router::new()
        .route("/extension", route(extension))
        .route("/extractor", route(extractor))
        .route("/optional", route(optional))
        .layer(layer);
    let response = app.oneshot(get(path, "c1")).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn limiter() -> Limiter<MemoryStore> {
    Limiter::new(MemoryStore::new(), single_limit("5/min"))
}

#[tokio::test]
async fn axum_extension_and_extractors_return_the_decision() {
    for (path, text) in
        [("/extension", "Some(4) degraded=false"), ("/extractor", "Some(4)"), ("/optional", "true")]
    {
        let builder = RateLimitLayer::builder(limiter()).expose_decision();
        assert_eq!(respond(builder, path).await, (StatusCode::OK, text.to_owned()));
    }
}

#[tokio::test]
async fn missing_decision_is_an_error_unless_optional() {
    let (status, text) = respond(RateLimitLayer::builder(limiter()), "/extractor").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text.contains("expose_decision()"), "{text}");
    let (status, text) = respond(RateLimitLayer::builder(limiter()), "/optional").await;
    assert_eq!((status, text.as_str()), (StatusCode::OK, "false"));
}

#[tokio::test]
async fn decision_of_a_delayed_store_is_exposed() {
    let store = DelayedStore::default();
    store.release_all();
    let builder = RateLimitLayer::builder(Limiter::new(store, single_limit("5/min")));
    let (_, text) = respond(builder.expose_decision(), "/extension").await;
    assert_eq!(text, "Some(4) degraded=false");
}

#[tokio::test]
async fn degraded_decision_is_marked() {
    let store = FaultyStore::new(MemoryStore::new());
    store.set(StoreFault::Unreachable);
    let limiter = Limiter::new(FallbackStore::builder(store).build(), single_limit("5/min"));
    let builder = RateLimitLayer::builder(limiter).expose_decision();
    let (_, text) = respond(builder, "/extension").await;
    assert_eq!(text, "Some(4) degraded=true");
}

#[tokio::test]
async fn undecided_request_has_no_decision() {
    let store = FaultyStore::new(MemoryStore::new());
    store.set(StoreFault::Unreachable);
    let builder = RateLimitLayer::builder(Limiter::new(store, single_limit("5/min")));
    assert_eq!(respond(builder.expose_decision(), "/optional").await.1, "false");
}
