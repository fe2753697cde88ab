//! Requests that are not limited.

use axum::body::Body;
use http::{Method, Request};

use crate::inbound::fixture::{get, hello, layer_by_client, send, single_limit};

#[tokio::test]
async fn skips_methods_paths_and_predicates() {
    let (builder, _) = layer_by_client(single_limit("1/min"));
    let builder = builder.skip_method(Method::OPTIONS).skip_path("/healthz");
    let service = hello(builder.skip_if(|request| request.headers.contains_key("x-internal")));
    let preflight = || Request::options("/").header("x-client-id", "c1").body(Body::empty());
    let internal = || Request::get("/").header("x-internal", "1").body(Body::empty());
    for _ in 0..3 {
        for request in [preflight().unwrap(), get("/healthz", "c1"), internal().unwrap()] {
            let response = send(&service, request).await;
            assert_eq!((response.status.as_u16(), response.text()), (200, "hello"));
            assert_eq!(response.header("x-ratelimit-limit"), None);
        }
    }
    assert_eq!(send(&service, get("/", "c1")).await.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(send(&service, get("/healthz/deep", "c1")).await.status.as_u16(), 429);
}

#[tokio::test]
async fn skips_nothing_by_default() {
    let (builder, _) = layer_by_client(single_limit("1/min"));
    let service = hello(builder);
    let preflight = Request::options("/healthz").header("x-client-id", "c1").body(Body::empty());
    assert_eq!(send(&service, preflight.unwrap()).await.header("x-ratelimit-remaining"), Some("0"));
}
