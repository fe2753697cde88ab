//! What requests cost, before and after.

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
use tollgate_tower::{Counting, RateLimitLayerBuilder};
use tower::util::BoxCloneSyncService;
use tower::{Layer, service_fn};

use crate::fixture::{Served, Store, ask, begin, by_client, get, hello, one, policy, served};

const COST: HeaderName = HeaderName::from_static("x-cost");

async fn left(service: &Served, request: Request<Body>) -> Option<u64> {
    let answer = ask(service, request).await;
    answer.header("x-ratelimit-remaining").map(|left| left.parse().unwrap())
}

#[tokio::test]
async fn a_closure_says_what_requests_cost() {
    let (builder, _) = by_client(one("10/min"));
    let service = hello(builder.cost(|request| if request.uri.path() == "/big" { 4 } else { 0 }));
    assert_eq!(left(&service, get("/big", "c1")).await, Some(6));
    assert_eq!(left(&service, get("/small", "c1")).await, Some(6));
}

#[tokio::test]
async fn a_header_says_what_requests_cost_and_nonsense_costs_one() {
    let (builder, _) = by_client(one("10/min"));
    let service = hello(builder.cost_header(COST));
    let costing = |cost: &str| {
        let mut request = get("/", "c1");
        request.headers_mut().insert(COST, cost.parse().unwrap());
        request
    };
    for (cost, expected) in [("3", 7), ("0", 6), ("-1", 5), ("many", 4), ("", 3)] {
        assert_eq!(left(&service, costing(cost)).await, Some(expected), "{cost}");
    }
    assert_eq!(ask(&service, costing("18446744073709551615")).await.status.as_u16(), 429);
    assert_eq!(left(&service, get("/", "c1")).await, Some(2));
}

/// A service that answers with the status that is set.
fn with_status(builder: RateLimitLayerBuilder<Store>) -> (Served, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(200));
    let said = Arc::clone(&status);
    let service = served(builder, move |_| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::from_u16(said.load(Ordering::Relaxed)).unwrap();
        response
    });
    (service, status)
}

#[tokio::test]
async fn where_failures_count_successes_are_given_back() {
    let (builder, _) = by_client(one("3/min"));
    let (service, status) = with_status(builder.count_only(Counting::Failures));
    for _ in 0..9 {
        assert_eq!(left(&service, get("/login", "c1")).await, Some(3));
    }
    status.store(401, Ordering::Relaxed);
    for expected in [2, 1, 0] {
        assert_eq!(left(&service, get("/login", "c1")).await, Some(expected));
    }
    status.store(200, Ordering::Relaxed);
    assert_eq!(ask(&service, get("/login", "c1")).await.status.as_u16(), 429);
    assert_eq!(ask(&service, get("/login", "c2")).await.status.as_u16(), 200);
}

#[tokio::test]
async fn where_successes_count_failures_are_given_back() {
    let (builder, _) = by_client(one("3/min"));
    let (service, status) = with_status(builder.count_only(Counting::Successes));
    status.store(500, Ordering::Relaxed);
    for _ in 0..9 {
        assert_eq!(left(&service, get("/", "c1")).await, Some(3));
    }
    status.store(204, Ordering::Relaxed);
    for expected in [2, 1, 0] {
        assert_eq!(left(&service, get("/", "c1")).await, Some(expected));
    }
    assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 429);
}

#[tokio::test]
async fn what_is_given_back_is_what_was_taken() {
    let (builder, _) = by_client(one("10/min"));
    let builder = builder.cost(|_| 4).count_where(|response| response.status != 404);
    let (service, status) = with_status(builder);
    assert_eq!(left(&service, get("/", "c1")).await, Some(6));
    status.store(404, Ordering::Relaxed);
    assert_eq!(left(&service, get("/", "c1")).await, Some(6));
}

/// A body whose length nobody knows beforehand.
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
async fn a_response_of_known_size_is_paid_at_once() {
    let (builder, _) = by_client(one("100/min"));
    let service = served(builder.charge_by_size(|bytes| bytes), |_| {
        Response::new(Body::from("x".repeat(30)))
    });
    assert_eq!(left(&service, get("/", "c1")).await, Some(70));
    assert_eq!(left(&service, get("/", "c1")).await, Some(40));
}

#[tokio::test]
async fn a_response_of_unknown_size_is_paid_when_it_has_ended() {
    let (builder, _) = by_client(one("100/min"));
    let service = served(builder.charge_by_size(|bytes| bytes), |_| {
        Response::new(stream(&["twelve bytes", "eight by"]))
    });
    // What is told is what was left before.
    assert_eq!(left(&service, get("/", "c1")).await, Some(100));
    assert_eq!(left(&service, get("/", "c1")).await, Some(80));
}

#[tokio::test]
async fn who_goes_away_pays_for_what_was_sent() {
    let (builder, _) = by_client(one("100/min"));
    let service = served(builder.charge_by_size(|bytes| bytes), |_| {
        Response::new(stream(&["twelve bytes", "eight by"]))
    });
    let mut response = begin(&service, get("/", "c1")).await;
    response.body_mut().frame().await.unwrap().unwrap();
    drop(response);
    assert_eq!(left(&service, get("/", "c1")).await, Some(88));
}

#[tokio::test]
async fn a_limit_is_passed_by_what_is_in_flight_and_no_more() {
    let (builder, clock) = by_client(one("100/min"));
    let service = served(builder.charge_by_size(|bytes| bytes), |_| {
        Response::new(Body::from("x".repeat(70)))
    });
    let mut served_bytes = 0;
    while ask(&service, get("/", "c1")).await.status == 200 {
        served_bytes += 70;
    }
    assert_eq!(served_bytes, 140, "one was in flight when the limit was passed");
    clock.advance(Duration::from_secs(61));
    assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 200);
}

#[tokio::test]
async fn a_response_may_say_what_it_cost() {
    let (builder, _) = by_client(one("100/min"));
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
    assert_eq!(left(&service, get("/dear", "c1")).await, Some(75));
    assert_eq!(left(&service, get("/cheap", "c1")).await, Some(74));
}

/// A failure that comes a minute late takes nothing from those who came meanwhile.
#[tokio::test(start_paused = true)]
async fn what_has_left_its_window_is_not_given_back() {
    let (builder, clock) = by_client(one("2/min"));
    let layer = builder.count_only(Counting::Successes).build();
    let quick =
        service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
    let quick: Served = BoxCloneSyncService::new(layer.layer(quick));
    let others = quick.clone();
    let slow = service_fn(move |_: Request<Body>| {
        let (others, clock) = (others.clone(), clock.clone());
        async move {
            tokio::time::advance(Duration::from_secs(61)).await;
            clock.advance(Duration::from_secs(61));
            assert_eq!(left(&others, get("/", "c1")).await, Some(1));
            let failed = Response::builder().status(StatusCode::BAD_GATEWAY);
            Ok::<_, Infallible>(failed.body(Body::empty()).unwrap())
        }
    });
    let slow: Served = BoxCloneSyncService::new(layer.layer(slow));
    let failed = ask(&slow, get("/", "c1")).await;
    assert_eq!(failed.status.as_u16(), 502);
    assert!(failed.header("x-ratelimit-remaining").is_some(), "every response tells of the limit");
    assert_eq!(left(&quick, get("/", "c1")).await, Some(0), "the other's is still counted");
}

#[tokio::test]
async fn slots_are_held_and_not_paid_for_where_cost_is_known_later() {
    let rules = policy("  - { name: api, limits: [100/min, { concurrency: 2, ttl: 60s }] }");
    let (builder, _) = by_client(rules);
    let service = served(builder.charge_by_size(|bytes| bytes), |_| {
        Response::new(stream(&["twelve bytes", "eight by"]))
    });
    let first = begin(&service, get("/", "c1")).await;
    let second = begin(&service, get("/", "c1")).await;
    assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 429, "both slots are held");
    drop((first, second));
    for _ in 0..4 {
        assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 200);
    }
    // Two of nothing sent, four of twenty bytes: what is left is less than one more would leave.
    assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 200);
    assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 429, "100 bytes are sent");
}
