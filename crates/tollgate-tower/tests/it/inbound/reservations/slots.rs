//! Reservations hold their slots, and are renewed, until the response body ends.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use tollgate::{Facts, Policy};
use tollgate_tower::{Estimate, RequestHead};
use tower::util::BoxCloneSyncService;
use tower::{Layer, service_fn};

use super::fixture::{USED, json};
use crate::inbound::fixture::{get, layer_by_client, policy, send, send_unread, served};

fn one_slot() -> Policy {
    policy(
        "  - name: llm
    per: [client]
    limits: [{ rate: 1000/d, unit: tokens, algorithm: token_bucket }, { concurrency: 1, ttl: 30s, name: streams }]",
    )
}

fn tokens(_: &RequestHead<'_>) -> Estimate {
    let costs = tollgate::Costs::of([("tokens", 500)]).unwrap();
    Estimate::of(costs).ttl(Duration::from_secs(12))
}

#[tokio::test(start_paused = true)]
async fn reservations_are_renewed_until_they_are_settled() {
    let (builder, clock) = layer_by_client(one_slot());
    let layer = builder.reserve(tokens).settle_by_usage();
    let service = served(layer, json(200, USED));
    let held = send_unread(&service, get("/", "c1")).await;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        clock.advance(Duration::from_secs(2));
    }
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 429, "the slot is held");
    drop(held);
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 200, "the slot is free");
}

/// The record of a reservation is kept for its ttl and one window after the last renewal.
#[tokio::test(start_paused = true)]
async fn long_responses_are_settled_after_their_window() {
    let per_minute = policy(
        "  - name: llm
    per: [client]
    limits: [{ rate: 1000/min, unit: tokens, algorithm: token_bucket, name: tokens }]",
    );
    let (builder, clock) = layer_by_client(per_minute);
    let layer = builder.reserve(tokens).settle_by_usage().build();
    let respond = json(200, r#"{"usage":{"prompt_tokens":900,"completion_tokens":500}}"#);
    let service = service_fn(move |request: Request<Body>| {
        let response = respond(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let service = BoxCloneSyncService::new(layer.layer(service));
    let open = send_unread(&service, get("/", "c1")).await;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        clock.advance(Duration::from_secs(2));
    }
    open.into_body().collect().await.unwrap();
    let facts = Facts::of([("client", "c1")]).unwrap();
    // The bucket has refilled; the 900 tokens above the estimate are taken from it.
    assert_eq!(layer.limiter().peek(&facts).await.unwrap().remaining(), Some(100));
}
