//! Requests that no limit is for.

use axum::body::Body;
use http::{Method, Request};

use crate::fixture::{ask, by_client, get, hello, one};

#[tokio::test]
async fn preflights_and_health_checks_may_pass_uncounted() {
    let (builder, _) = by_client(one("1/min"));
    let builder = builder.skip_method(Method::OPTIONS).skip_path("/healthz");
    let service = hello(builder.skip_if(|request| request.headers.contains_key("x-internal")));
    let preflight = || Request::options("/").header("x-client-id", "c1").body(Body::empty());
    let internal = || Request::get("/").header("x-internal", "1").body(Body::empty());
    for _ in 0..3 {
        for request in [preflight().unwrap(), get("/healthz", "c1"), internal().unwrap()] {
            let answer = ask(&service, request).await;
            assert_eq!((answer.status.as_u16(), answer.text()), (200, "hello"));
            assert_eq!(answer.header("x-ratelimit-limit"), None);
        }
    }
    assert_eq!(ask(&service, get("/", "c1")).await.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(ask(&service, get("/healthz/deep", "c1")).await.status.as_u16(), 429);
}

#[tokio::test]
async fn nothing_is_skipped_unless_that_is_said() {
    let (builder, _) = by_client(one("1/min"));
    let service = hello(builder);
    let preflight = Request::options("/healthz").header("x-client-id", "c1").body(Body::empty());
    assert_eq!(ask(&service, preflight.unwrap()).await.header("x-ratelimit-remaining"), Some("0"));
}
