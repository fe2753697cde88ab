//! Responses to refused requests.

use bytes::Bytes;
use http::{Response, StatusCode};
use tollgate::RefusalStyle;

use crate::inbound::fixture::{
    block_policy, get, hello, layer_by_client, send, single_limit, ten_per_minute,
};

#[tokio::test]
async fn simple_body_is_exact() {
    let (builder, clock) = layer_by_client(single_limit("1/min"));
    let service = hello(builder);
    assert_eq!(send(&service, get("/", "c1")).await.status, StatusCode::OK);
    clock.advance(std::time::Duration::from_millis(15_500));
    let refused = send(&service, get("/", "c1")).await;
    let body = r#"{"error":"rate_limit_exceeded","message":"Too many requests. Please wait 45 seconds.","retry_after":45}"#;
    assert_eq!((refused.status.as_u16(), refused.text()), (429, body));
    assert_eq!(refused.header("retry-after"), Some("45"));
    assert_eq!(refused.header("content-type"), Some("application/json"));
    assert_eq!(refused.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn never_verdict_has_no_retry_after() {
    let (builder, _) = layer_by_client(block_policy());
    let refused = send(&hello(builder), get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 429);
    assert_eq!(refused.header("retry-after"), None);
    assert!(refused.text().ends_with(r#""retry_after":null}"#), "{}", refused.text());
}

#[tokio::test]
async fn problem_body_names_the_refusing_limits() {
    let (builder, _) = layer_by_client(ten_per_minute());
    let service = hello(builder.refusal_style(RefusalStyle::Problem));
    for _ in 0..10 {
        send(&service, get("/", "c1")).await;
    }
    let refused = send(&service, get("/", "c1")).await;
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    let problem: serde_json::Value = serde_json::from_slice(&refused.body).unwrap();
    let kind = "https://iana.org/assignments/http-problem-types#quota-exceeded";
    assert_eq!(problem["type"], kind);
    assert_eq!(problem["status"], 429);
    assert_eq!(problem["violated-policies"], serde_json::json!(["60s"]));
}

#[tokio::test]
async fn callback_replaces_the_response() {
    let (builder, _) = layer_by_client(single_limit("1/min"));
    let service = hello(builder.on_refusal(|refused| {
        let wait = refused.retry_after().unwrap().as_secs();
        let text = format!("{} {} {} {wait}", refused.rule(), refused.key(), refused.request().uri);
        let mut response = Response::new(Bytes::from(text));
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    }));
    send(&service, get("/a?b", "c1")).await;
    let refused = send(&service, get("/a?b", "c1")).await;
    assert_eq!((refused.status.as_u16(), refused.text()), (418, "api c1 /a?b 60"));
    assert!(refused.headers.is_empty(), "{:?}", refused.headers);
}

#[tokio::test]
async fn callback_can_modify_the_default_response() {
    let (builder, _) = layer_by_client(single_limit("1/min"));
    let service = hello(builder.on_refusal(|refused| {
        let mut response = refused.response();
        *response.body_mut() = Bytes::from_static(b"busy");
        response
    }));
    send(&service, get("/", "c1")).await;
    let refused = send(&service, get("/", "c1")).await;
    assert_eq!((refused.status.as_u16(), refused.text()), (429, "busy"));
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(refused.header("retry-after"), Some("60"));
}
