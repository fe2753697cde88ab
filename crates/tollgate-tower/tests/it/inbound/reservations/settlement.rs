//! Settlements by usage, by header and by a function.

use axum::body::Body;
use http::{HeaderName, Response};
use tollgate::{Costs, HeaderStyle, RefusalStyle, Unit};
use tollgate_tower::{Estimate, RateLimitDecision};

use super::fixture::{
    AFTER_ESTIMATE, AFTER_FAILURE, AFTER_USED, FULL, USED, WHILE_RESERVED, json, remaining,
    reserving,
};
use crate::inbound::fixture::{get, hello, send, send_unread, served};

#[tokio::test]
async fn json_usage_is_settled_when_the_body_ends() {
    let (builder, limiter) = reserving();
    let service = served(builder.settle_by_usage(), json(200, USED));
    let response = send_unread(&service, get("/", "c1")).await;
    assert_eq!(remaining(&limiter).await, WHILE_RESERVED);
    drop(response);
    // Dropped before its body was read: the usage is not known.
    assert_eq!(remaining(&limiter).await, AFTER_ESTIMATE);
    let (builder, limiter) = reserving();
    let service = served(builder.settle_by_usage(), json(200, USED));
    let response = send(&service, get("/", "c1")).await;
    assert_eq!(response.text(), USED);
    assert_eq!(remaining(&limiter).await, AFTER_USED);
}

#[tokio::test]
async fn usage_above_the_estimate_is_charged() {
    let (builder, limiter) = reserving();
    let body = r#"{"usage":{"input_tokens":300,"output_tokens":600}}"#;
    send(&served(builder.settle_by_usage(), json(200, body)), get("/", "c1")).await;
    assert_eq!(remaining(&limiter).await, [9, 100, 3400, 3]);
}

#[tokio::test]
async fn unknown_usage_keeps_the_estimate() {
    let (builder, limiter) = reserving();
    assert_eq!(send(&hello(builder.settle_by_usage()), get("/", "c1")).await.text(), "hello");
    assert_eq!(remaining(&limiter).await, AFTER_ESTIMATE);
    let (builder, limiter) = reserving();
    send(&served(builder, json(200, USED)), get("/", "c1")).await;
    assert_eq!(remaining(&limiter).await, AFTER_ESTIMATE, "the layer does not read the usage");
}

#[tokio::test]
async fn failures_without_usage_are_charged_for_requests_only() {
    for status in [400, 429, 500, 503] {
        let (builder, limiter) = reserving();
        let body = r#"{"error":{"message":"overloaded"},"content":[{"text":"no tokens"}]}"#;
        let service = served(builder.settle_by_usage(), json(status, body));
        assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), status);
        assert_eq!(remaining(&limiter).await, AFTER_FAILURE, "{status}");
    }
    let (builder, limiter) = reserving();
    send(&served(builder.settle_by_usage(), json(500, USED)), get("/", "c1")).await;
    assert_eq!(remaining(&limiter).await, AFTER_USED, "a failure with usage is charged");
}

#[tokio::test]
async fn headers_have_the_final_amounts() {
    for (tokens, money, expected) in [
        (Some("7"), Some("30"), [9, 993, 9970, 3]),
        (Some("7"), None, [9, 993, 7400, 3]),
        (Some("-7"), Some("many"), AFTER_ESTIMATE),
        (None, None, AFTER_ESTIMATE),
    ] {
        let (builder, limiter) = reserving();
        let name = HeaderName::from_static;
        let builder = builder.settle_by_header(name("x-tokens"), Unit::new("tokens").unwrap());
        let builder = builder.settle_by_header(name("x-money"), Unit::new("money").unwrap());
        let service = served(builder, move |_| {
            let response = Response::builder().status(200);
            let response =
                tokens.into_iter().fold(response, |all, tokens| all.header("x-tokens", tokens));
            let response =
                money.into_iter().fold(response, |all, money| all.header("x-money", money));
            response.body(Body::from("hello")).unwrap()
        });
        let response = send_unread(&service, get("/", "c1")).await;
        assert_eq!(remaining(&limiter).await, WHILE_RESERVED, "slots are held while it is sent");
        drop(response);
        assert_eq!(remaining(&limiter).await, expected, "{tokens:?} {money:?}");
    }
}

#[tokio::test]
async fn a_function_has_the_final_amounts() {
    let (builder, limiter) = reserving();
    let builder = builder.settle_by(|head| {
        assert_eq!(head.status, 201);
        Costs::of([("requests", 0), ("tokens", 1)]).unwrap()
    });
    send(&served(builder, json(201, USED)), get("/", "c1")).await;
    assert_eq!(remaining(&limiter).await, [10, 999, 7400, 3]);
}

#[tokio::test]
async fn a_refused_reservation_takes_nothing() {
    let (builder, limiter) = reserving();
    let builder = builder.reserve(|request| {
        let tokens = if request.uri.path() == "/large" { 1001 } else { 600 };
        Estimate::of(Costs::requests(1).and("tokens", tokens).unwrap())
    });
    let builder =
        builder.header_styles([HeaderStyle::Provider]).refusal_style(RefusalStyle::Simple);
    let service = hello(builder.settle_by_usage());
    let large = send(&service, get("/large", "c1")).await;
    assert_eq!((large.status.as_u16(), large.header("retry-after")), (429, None), "never fits");
    assert_eq!(remaining(&limiter).await, FULL);
    let first = send(&service, get("/", "c1")).await;
    assert_eq!(first.status.as_u16(), 200);
    let refused = send(&service, get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 429);
    // 200 of 1000 tokens per minute are missing.
    assert_eq!(refused.header("retry-after"), Some("12"));
    assert_eq!(refused.header("x-ratelimit-remaining-tokens"), Some("400"));
    assert_eq!(refused.header("x-ratelimit-remaining-requests"), Some("9"));
    assert!(refused.text().contains("rate_limit_exceeded"), "{}", refused.text());
    assert_eq!(remaining(&limiter).await, [9, 400, 10_000, 3]);
}

#[tokio::test]
async fn the_decision_is_that_of_the_reservation() {
    let (builder, _) = reserving();
    let builder = builder.header_styles([HeaderStyle::Provider]).expose_decision();
    let service = served(builder.settle_by_usage(), |request| {
        let decision = request.extensions().get::<RateLimitDecision>().unwrap();
        let amounts: Vec<u64> = decision.statuses().map(|status| status.remaining()).collect();
        assert_eq!(amounts, WHILE_RESERVED);
        json(200, USED)(request)
    });
    let response = send(&service, get("/", "c1")).await;
    for (name, value) in [
        ("x-ratelimit-limit-requests", "10"),
        ("x-ratelimit-remaining-requests", "9"),
        ("x-ratelimit-limit-tokens", "1000"),
        ("x-ratelimit-remaining-tokens", "500"),
        ("x-ratelimit-reset-tokens", "30s"),
    ] {
        assert_eq!(response.header(name), Some(value), "{name}");
    }
}

#[tokio::test]
async fn skipped_requests_reserve_nothing() {
    let (builder, limiter) = reserving();
    let service = served(builder.settle_by_usage().skip_path("/healthz"), json(200, USED));
    send(&service, get("/healthz", "c1")).await;
    assert_eq!(remaining(&limiter).await, FULL);
}
