//! gRPC refusals, read by tonic.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use tollgate::HeaderStyle;
use tonic::Code;
use tonic_types::StatusExt;

use crate::inbound::fixture::{block_policy, hello, layer_by_client, send, single_limit};

fn call(content_type: &str) -> Request<Body> {
    let request = Request::post("/grpc.health.v1.Health/Check").header("x-client-id", "c1");
    request.header("content-type", content_type).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn refusal_has_retry_info() {
    let (builder, clock) = layer_by_client(single_limit("1/min"));
    let service = hello(builder.header_styles([HeaderStyle::XDelta]));
    send(&service, call("application/grpc")).await;
    clock.advance(Duration::from_micros(1_234_567));
    let refused = send(&service, call("application/grpc+proto")).await;
    assert_eq!((refused.status.as_u16(), refused.text()), (200, ""));
    assert_eq!(refused.header("content-type"), Some("application/grpc"));
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    let status = tonic::Status::from_header_map(&refused.headers).unwrap();
    assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "too many requests"));
    let info = status.get_details_retry_info().unwrap();
    assert_eq!(info.retry_delay, Some(Duration::from_micros(58_765_433)));
}

#[tokio::test]
async fn never_verdict_has_no_retry_info() {
    let (builder, _) = layer_by_client(block_policy());
    let refused = send(&hello(builder), call("application/grpc")).await;
    let status = tonic::Status::from_header_map(&refused.headers).unwrap();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.get_details_retry_info().is_none());
}

#[tokio::test]
async fn other_content_types_receive_http_refusals() {
    for content_type in ["application/grpc-web", "application/grpcish", "application/json"] {
        let (builder, _) = layer_by_client(block_policy());
        let refused = send(&hello(builder), call(content_type)).await;
        assert_eq!(refused.status.as_u16(), 429, "{content_type}");
    }
}
