//! Request costs, at admission and after the response.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderName, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use tollgate::{Costs, HeaderStyle, Limiter};
use tollgate_tower::{
    CountedResponses, Header, RateLimitLayer, RateLimitLayerBuilder, RequestHead,
};
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use crate::inbound::delayed_store::DelayedStore;

use crate::inbound::fixture::{
    Served, Store, get, hello, layer_by_client, policy, send, send_unread, served, single_limit,
};

const COST: HeaderName = HeaderName::from_static("x-cost");

async fn remaining(service: &Served, request: Request<Body>) -> Option<u64> {
    let response = send(service, request).await;
    response.header("x-ratelimit-remaining").map(|value| value.parse().unwrap())
}

#[tokio::test]
async fn cost_from_closure() {
    let (builder, _) = layer_by_client(single_limit("10/min"));
    let service = hello(builder.cost(|request| if request.uri.path() == "/big" { 4 } else { 0 }));
    assert_eq!(remaining(&service, get("/big", "c1")).await, Some(6));
    assert_eq!(remaining(&service, get("/small", "c1")).await, Some(6));
}

#[tokio::test]
async fn cost_from_header_defaults_to_one_if_invalid() {
    let (builder, _) = layer_by_client(single_limit("10/min"));
    let service = hello(builder.cost_header(COST));
    let costing = |cost: &str| {
        let mut request = get("/", "c1");
        request.headers_mut().insert(COST, cost.parse().unwrap());
        request
    };
    for (cost, expected) in [("3", 7), ("0", 6), ("-1", 5), ("many", 4), ("", 3)] {
        assert_eq!(remaining(&service, costing(cost)).await, Some(expected), "{cost}");
    }
    assert_eq!(send(&service, costing("18446744073709551615")).await.status.as_u16(), 429);
    assert_eq!(remaining(&service, get("/", "c1")).await, Some(2));
}

/// A service that responds with a status set by the test.
fn with_status(builder: RateLimitLayerBuilder<Store>) -> (Served, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(200));
    let current = Arc::clone(&status);
    let service = served(builder, move |_| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::from_u16(current.load(Ordering::Relaxed)).unwrap();
        response
    });
    (service, status)
}

#[tokio::test]
async fn counting_failures_refunds_successes() {
    let (builder, _) = layer_by_client(single_limit("3/min"));
    let (service, status) = with_status(builder.count_responses(CountedResponses::Failures));
    for _ in 0..9 {
        assert_eq!(remaining(&service, get("/login", "c1")).await, Some(3));
    }
    status.store(401, Ordering::Relaxed);
    for expected in [2, 1, 0] {
        assert_eq!(remaining(&service, get("/login", "c1")).await, Some(expected));
    }
    status.store(200, Ordering::Relaxed);
    assert_eq!(send(&service, get("/login", "c1")).await.status.as_u16(), 429);
    assert_eq!(send(&service, get("/login", "c2")).await.status.as_u16(), 200);
}

#[tokio::test]
async fn counting_successes_refunds_failures() {
    let (builder, _) = layer_by_client(single_limit("3/min"));
    let (service, status) = with_status(builder.count_responses(CountedResponses::Successes));
    status.store(500, Ordering::Relaxed);
    for _ in 0..9 {
        assert_eq!(remaining(&service, get("/", "c1")).await, Some(3));
    }
    status.store(204, Ordering::Relaxed);
    for expected in [2, 1, 0] {
        assert_eq!(remaining(&service, get("/", "c1")).await, Some(expected));
    }
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 429);
}

#[tokio::test]
async fn refund_equals_the_cost_taken() {
    let (builder, _) = layer_by_client(single_limit("10/min"));
    let builder = builder.cost(|_| 4).count_responses_if(|response| response.status != 404);
    let (service, status) = with_status(builder);
    assert_eq!(remaining(&service, get("/", "c1")).await, Some(6));
    status.store(404, Ordering::Relaxed);
    assert_eq!(remaining(&service, get("/", "c1")).await, Some(6));
}

const UNITS: &str = "  - { name: api, limits: [10/min, { rate: 100/min, unit: bytes, name: bytes }, { concurrency: 5 }] }";

/// The path is the number of bytes of a request, such as `/30`.
fn by_unit(request: &RequestHead<'_>) -> Costs {
    let bytes = request.uri.path().trim_start_matches('/').parse().unwrap();
    Costs::of([("bytes", bytes)]).unwrap()
}

#[tokio::test]
async fn costs_by_unit_are_taken_and_refunded() {
    let (builder, _) = layer_by_client(policy(UNITS));
    let builder = builder
        .header_styles([HeaderStyle::Draft11])
        .costs(by_unit)
        .count_responses_if(|response| response.status != 404);
    let (service, status) = with_status(builder);
    let send = async |path: &str| send(&service, get(path, "c1")).await;
    let taken = send("/96").await;
    assert_eq!(
        taken.header("ratelimit-policy"),
        Some("\"60s\";q=10;w=60,\"bytes\";q=100;qu=\"bytes\";w=60,\"concurrency\";q=5")
    );
    assert_eq!(taken.header("ratelimit"), Some("\"bytes\";r=4;t=60"));
    status.store(404, Ordering::Relaxed);
    assert_eq!(send("/4").await.header("ratelimit"), Some("\"bytes\";r=4;t=60"), "refunded");
    assert_eq!(send("/5").await.status, 429);
    assert_eq!(send("/0").await.status, 404, "costs nothing");
}

#[tokio::test]
async fn costs_by_unit_are_taken_from_a_store_with_delay() {
    let store = DelayedStore::default();
    store.release_all();
    let limiter = Limiter::new(store, policy(UNITS));
    let client = Header::from_static("x-client-id");
    let layer = RateLimitLayer::builder(limiter).fact("client", client).costs(by_unit).build();
    let service = layer.layer(service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    }));
    let status =
        async |path: &str| service.clone().oneshot(get(path, "c1")).await.unwrap().status();
    assert_eq!(
        (status("/100").await, status("/1").await),
        (StatusCode::OK, StatusCode::TOO_MANY_REQUESTS)
    );
}

#[tokio::test]
async fn costs_by_unit_of_a_single_limit_in_requests_are_its_requests() {
    let (builder, _) = layer_by_client(single_limit("10/min"));
    let service = hello(builder.costs(by_unit));
    assert_eq!(remaining(&service, get("/30", "c1")).await, Some(10));
    let (builder, _) = layer_by_client(single_limit("{ rate: 100/min, unit: bytes }"));
    let service = hello(builder.costs(by_unit));
    assert_eq!(remaining(&service, get("/30", "c1")).await, Some(70));
}

/// A body of unknown length.
struct Chunks(std::slice::Iter<'static, &'static str>);

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.0.next();
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(Bytes::from_static(chunk.as_bytes())))))
    }
}

fn stream(chunks: &'static [&'static str]) -> Body {
    Body::new(Chunks(chunks.iter()))
}

#[tokio::test]
async fn response_of_known_size_is_charged_at_its_head() {
    let (builder, _) = layer_by_client(single_limit("100/min"));
    let service = served(builder.charge_by_size(|bytes| bytes), |_| {
        Response::new(Body::from("x".repeat(30)))
    });
    assert_eq!(remaining(&service, get("/", "c1")).await, Some(70));
    assert_eq!(remaining(&service, get("/", "c1")).await, Some(40));
}

#[tokio::test]
async fn response_of_unknown_size_is_charged_at_body_end() {
    let (builder, _) = layer_by_client(single_limit("100/min"));
    let service = served(builder.charge_by_size(|bytes| bytes), |_| {
        Response::new(stream(&["twelve bytes", "eight by"]))
    });
    // The headers show the amount before the debit.
    assert_eq!(remaining(&service, get("/", "c1")).await, Some(100));
    assert_eq!(remaining(&service, get("/", "c1")).await, Some(80));
}

#[tokio::test]
async fn disconnected_client_is_charged_for_bytes_sent() {
    let (builder, _) = layer_by_client(single_limit("100/min"));
    let service = served(builder.charge_by_size(|bytes| bytes), |_| {
        Response::new(stream(&["twelve bytes", "eight by"]))
    });
    let mut response = send_unread(&service, get("/", "c1")).await;
    response.body_mut().frame().await.unwrap().unwrap();
    drop(response);
    assert_eq!(remaining(&service, get("/", "c1")).await, Some(88));
}

#[tokio::test]
async fn limit_is_exceeded_only_by_requests_in_flight() {
    let (builder, clock) = layer_by_client(single_limit("100/min"));
    let service = served(builder.charge_by_size(|bytes| bytes), |_| {
        Response::new(Body::from("x".repeat(70)))
    });
    let mut served_bytes = 0;
    while send(&service, get("/", "c1")).await.status == 200 {
        served_bytes += 70;
    }
    assert_eq!(served_bytes, 140, "one request was in flight when the limit was exceeded");
    clock.advance(Duration::from_secs(61));
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 200);
}

#[tokio::test]
async fn cost_from_response_head() {
    let (builder, _) = layer_by_client(single_limit("100/min"));
    let cost = |head: &http::response::Parts| {
        head.headers.get("x-units").and_then(|units| units.to_str().ok()?.parse().ok()).unwrap_or(1)
    };
    let service = served(builder.charge_by_response(cost), |request| {
        let mut response = Response::new(Body::empty());
        if request.uri().path() == "/dear" {
            response.headers_mut().insert("x-units", 25.into());
        }
        response
    });
    assert_eq!(remaining(&service, get("/dear", "c1")).await, Some(75));
    assert_eq!(remaining(&service, get("/cheap", "c1")).await, Some(74));
}

/// A refund after the window has passed does not refund later requests.
#[tokio::test(start_paused = true)]
async fn take_that_left_its_window_is_not_refunded() {
    let (builder, clock) = layer_by_client(single_limit("2/min"));
    let layer = builder.count_responses(CountedResponses::Successes).build();
    let quick =
        service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
    let quick: Served = BoxCloneSyncService::new(layer.layer(quick));
    let others = quick.clone();
    let slow = service_fn(move |_: Request<Body>| {
        let (others, clock) = (others.clone(), clock.clone());
        async move {
            tokio::time::advance(Duration::from_secs(61)).await;
            clock.advance(Duration::from_secs(61));
            assert_eq!(remaining(&others, get("/", "c1")).await, Some(1));
            let failed = Response::builder().status(StatusCode::BAD_GATEWAY);
            Ok::<_, Infallible>(failed.body(Body::empty()).unwrap())
        }
    });
    let slow: Served = BoxCloneSyncService::new(layer.layer(slow));
    let failed = send(&slow, get("/", "c1")).await;
    assert_eq!(failed.status.as_u16(), 502);
    assert!(failed.header("x-ratelimit-remaining").is_some(), "every response has the headers");
    assert_eq!(remaining(&quick, get("/", "c1")).await, Some(0), "the later request still counts");
}

#[tokio::test]
async fn deferred_cost_still_holds_slots() {
    let rules = policy("  - { name: api, limits: [100/min, { concurrency: 2, ttl: 60s }] }");
    let (builder, _) = layer_by_client(rules);
    let service = served(builder.charge_by_size(|bytes| bytes), |_| {
        Response::new(stream(&["twelve bytes", "eight by"]))
    });
    let first = send_unread(&service, get("/", "c1")).await;
    let second = send_unread(&service, get("/", "c1")).await;
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 429, "both slots are held");
    drop((first, second));
    for _ in 0..4 {
        assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 200);
    }
    // Two requests sent nothing, four sent 20 bytes each, so 20 of 100 are left.
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 200);
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 429, "100 bytes were sent");
}
