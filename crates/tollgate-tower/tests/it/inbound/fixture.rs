//! Services behind a layer, with a manual clock.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tollgate::{Limit, Limiter, ManualClock, MemoryStore, Policy, Timestamp};
use tollgate_tower::{Header, RateLimitLayer, RateLimitLayerBuilder, ResponseBody};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

pub(crate) type Store = MemoryStore<ManualClock>;
pub(crate) type Served =
    BoxCloneSyncService<Request<Body>, Response<ResponseBody<Body>>, Infallible>;

/// 2023-12-10 09:20:00 UTC, and a quarter of a second.
pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_702_200_000_250_000);

pub(crate) fn policy(rules: &str) -> Policy {
    let text = format!("version: 1\nrules:\n{rules}");
    Policy::from_yaml("policy.yaml", &text, Policy::builtin_limit()).unwrap()
}

pub(crate) fn ten_per_minute() -> Policy {
    policy("  - { name: api, limits: [10/min, 100/h], algorithm: token_bucket }")
}

/// Creates a limiter at time `NOW`, and returns the clock that moves it.
pub(crate) fn limiter(policy: Policy) -> (Limiter<Store>, ManualClock) {
    let clock = ManualClock::at(NOW);
    let store = MemoryStore::builder().clock(clock.clone()).build();
    (Limiter::new(store, policy), clock)
}

/// Creates a layer that identifies clients by `x-client-id`.
pub(crate) fn layer_by_client(policy: Policy) -> (RateLimitLayerBuilder<Store>, ManualClock) {
    let (limiter, clock) = limiter(policy);
    let client = Header::from_static("x-client-id");
    (RateLimitLayer::builder(limiter).fact("client", client), clock)
}

/// Puts a service that responds `hello` behind the layer.
pub(crate) fn hello(builder: RateLimitLayerBuilder<Store>) -> Served {
    served(builder, |_| Response::new(Body::from("hello")))
}

pub(crate) fn served(
    builder: RateLimitLayerBuilder<Store>,
    respond: impl Fn(&Request<Body>) -> Response<Body> + Clone + Send + Sync + 'static,
) -> Served {
    let service = service_fn(move |request: Request<Body>| {
        let response = respond(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    BoxCloneSyncService::new(builder.build().layer(service))
}

pub(crate) fn get(path: &str, client: &str) -> Request<Body> {
    Request::get(path).header("x-client-id", client).body(Body::empty()).unwrap()
}

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl TestResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

pub(crate) async fn send(service: &Served, request: Request<Body>) -> TestResponse {
    let response = send_unread(service, request).await;
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    TestResponse { status: head.status, headers: head.headers, body }
}

/// Sends a request and returns the response before its body is read.
pub(crate) async fn send_unread(
    service: &Served,
    request: Request<Body>,
) -> Response<ResponseBody<Body>> {
    let mut service = service.clone();
    service.ready().await.unwrap().call(request).await.unwrap()
}

pub(crate) fn single_limit(rate: &str) -> Policy {
    policy(&format!("  - {{ name: api, limits: [{rate}] }}"))
}

pub(crate) fn block_policy() -> Policy {
    Policy::with_default(Limit::block())
}
