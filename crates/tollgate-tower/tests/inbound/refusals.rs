//! What refused requests are answered.

use bytes::Bytes;
use http::{Response, StatusCode};
use tollgate::RefusalStyle;

use crate::fixture::{ask, blocked, by_client, get, hello, one, ten_a_minute};

#[tokio::test]
async fn the_body_is_to_the_letter() {
    let (builder, clock) = by_client(one("1/min"));
    let service = hello(builder);
    assert_eq!(ask(&service, get("/", "c1")).await.status, StatusCode::OK);
    clock.advance(std::time::Duration::from_millis(15_500));
    let refused = ask(&service, get("/", "c1")).await;
    let body = r#"{"error":"rate_limit_exceeded","message":"Too many requests. Please wait 45 seconds.","retry_after":45}"#;
    assert_eq!((refused.status.as_u16(), refused.text()), (429, body));
    assert_eq!(refused.header("retry-after"), Some("45"));
    assert_eq!(refused.header("content-type"), Some("application/json"));
    assert_eq!(refused.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn who_can_never_pass_is_not_told_to_wait() {
    let (builder, _) = by_client(blocked());
    let refused = ask(&hello(builder), get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 429);
    assert_eq!(refused.header("retry-after"), None);
    assert!(refused.text().ends_with(r#""retry_after":null}"#), "{}", refused.text());
}

#[tokio::test]
async fn problems_name_the_limits_that_refused() {
    let (builder, _) = by_client(ten_a_minute());
    let service = hello(builder.refusal_style(RefusalStyle::Problem));
    for _ in 0..10 {
        ask(&service, get("/", "c1")).await;
    }
    let refused = ask(&service, get("/", "c1")).await;
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    let problem: serde_json::Value = serde_json::from_slice(&refused.body).unwrap();
    let kind = "https://iana.org/assignments/http-problem-types#quota-exceeded";
    assert_eq!(problem["type"], kind);
    assert_eq!(problem["status"], 429);
    assert_eq!(problem["violated-policies"], serde_json::json!(["60s"]));
}

#[tokio::test]
async fn a_hook_says_all_of_it() {
    let (builder, _) = by_client(one("1/min"));
    let service = hello(builder.on_refusal(|refused| {
        let wait = refused.retry_after().unwrap().as_secs();
        let text = format!("{} {} {} {wait}", refused.rule(), refused.key(), refused.request().uri);
        let mut response = Response::new(Bytes::from(text));
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    }));
    ask(&service, get("/a?b", "c1")).await;
    let refused = ask(&service, get("/a?b", "c1")).await;
    assert_eq!((refused.status.as_u16(), refused.text()), (418, "api c1 /a?b 60"));
    assert!(refused.headers.is_empty(), "{:?}", refused.headers);
}

#[tokio::test]
async fn a_hook_may_begin_with_what_would_have_been_said() {
    let (builder, _) = by_client(one("1/min"));
    let service = hello(builder.on_refusal(|refused| {
        let mut response = refused.response();
        *response.body_mut() = Bytes::from_static(b"busy");
        response
    }));
    ask(&service, get("/", "c1")).await;
    let refused = ask(&service, get("/", "c1")).await;
    assert_eq!((refused.status.as_u16(), refused.text()), (429, "busy"));
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(refused.header("retry-after"), Some("60"));
}
