//! A layer that reserves, and the amounts that remain.

use std::sync::Arc;

use axum::body::Body;
use http::{Request, Response};
use tollgate::{Facts, Limiter, Policy};
use tollgate_tower::usage::TokenUsage;
use tollgate_tower::{Estimate, Header, RateLimitLayer, RateLimitLayerBuilder, RequestHead};

use crate::inbound::fixture::{Store, limiter, policy};

/// 10 requests and 1000 tokens per minute, 10 000 money per day, 3 streams. Input costs 2, output 10.
pub(crate) fn llm_policy() -> Policy {
    policy(
        "  - name: llm
    per: [client]
    algorithm: token_bucket
    limits:
      - 10/min
      - { rate: 1000/min, unit: tokens, name: tokens }
      - { rate: 10000/d, unit: money, name: money }
      - { concurrency: 3, ttl: 30s, name: streams }
prices:
  money: { input: 2, output: 10, per: 1 }",
    )
}

/// Reserves 300 tokens of input and 200 of output: 500 tokens, 2600 money.
pub(crate) const RESERVED: TokenUsage = TokenUsage { input: 300, output: 200 };

pub(crate) fn estimate(_: &RequestHead<'_>) -> Estimate {
    Estimate::of_usage(RESERVED)
}

/// What remains when nothing is used: requests, tokens, money, streams.
pub(crate) const FULL: [u64; 4] = [10, 1000, 10_000, 3];

/// A limiter and a layer that reserves [`RESERVED`].
pub(crate) fn reserving() -> (RateLimitLayerBuilder<Store>, Arc<Limiter<Store>>) {
    let (limiter, _) = limiter(llm_policy());
    let limiter = Arc::new(limiter);
    let client = Header::from_static("x-client-id");
    let builder = RateLimitLayer::builder(Arc::clone(&limiter)).fact("client", client);
    (builder.reserve(estimate), limiter)
}

/// Returns what remains of each limit of client `c1`.
pub(crate) async fn remaining<S: tollgate::Store>(limiter: &Limiter<S>) -> [u64; 4] {
    let facts = Facts::of([("client", "c1")]).unwrap();
    let decision = limiter.peek(&facts).await.unwrap();
    let remaining: Vec<u64> = decision.statuses().map(|status| status.remaining()).collect();
    remaining.try_into().unwrap()
}

/// Responds with JSON.
pub(crate) fn json(
    status: u16,
    body: &'static str,
) -> impl Fn(&Request<Body>) -> Response<Body> + Clone + Send + Sync + 'static {
    move |_| {
        let response =
            Response::builder().status(status).header("content-type", "application/json");
        response.body(Body::from(body)).unwrap()
    }
}

pub(crate) const USED: &str = r#"{"usage":{"prompt_tokens":100,"completion_tokens":20}}"#;
/// What remains after [`USED`]: 120 tokens, 400 money.
pub(crate) const AFTER_USED: [u64; 4] = [9, 880, 9600, 3];
/// What remains while [`RESERVED`] is reserved.
pub(crate) const WHILE_RESERVED: [u64; 4] = [9, 500, 7400, 2];
/// What remains when the estimate is final.
pub(crate) const AFTER_ESTIMATE: [u64; 4] = [9, 500, 7400, 3];
/// What remains after a failure that used nothing.
pub(crate) const AFTER_FAILURE: [u64; 4] = [9, 1000, 10_000, 3];
