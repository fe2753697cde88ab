//! Layers whose policy has one limit decide without a plan. Their responses equal those of the general path, which a layer
//! takes that exposes its decisions.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use proptest::prelude::*;
use tollgate::{HeaderStyle, ManualClock, RefusalStyle};
use tollgate_tower::{Header, RateLimitLayerBuilder};
use tower::{Layer, ServiceExt, service_fn};

use super::fixture::{Served, Store, TestResponse, hello, layer_by_client, policy, send};

/// A policy, the settings of a layer, and requests.
#[derive(Debug, Clone)]
struct History {
    rule: String,
    styles: Vec<HeaderStyle>,
    refusal_style: RefusalStyle,
    is_exposed: bool,
    requests: Vec<TestRequest>,
}

#[derive(Debug, Clone)]
struct TestRequest {
    wait: Duration,
    client: Option<String>,
    tenant: Option<String>,
    cost: u64,
}

fn request() -> impl Strategy<Value = TestRequest> {
    let client = "[ab]|10\\.0\\.0\\.[12]|[ab:%/ ]{0,3}|[a-b]{15,17}|x{1023,1026}";
    (
        prop_oneof![Just(0), 0..3_000_000u64],
        proptest::option::weighted(0.9, client),
        proptest::option::weighted(0.2, "[tu:]|y{1025}"),
        prop_oneof![8 => Just(1), 1 => Just(0), 1 => 2..30u64],
    )
        .prop_map(|(wait, client, tenant, cost)| TestRequest {
            wait: Duration::from_micros(wait),
            client,
            tenant,
            cost,
        })
}

fn rule() -> impl Strategy<Value = String> {
    let algorithm = prop::sample::select(vec![
        "token_bucket",
        "sliding_window",
        "sliding_counter",
        "fixed_window",
    ]);
    let rate = prop::sample::select(vec!["3/s", "5/min", "9/2s"]);
    let more = prop::sample::select(vec!["", ", cost: 2", ", per: [user]", ", distributed: off"]);
    (rate, algorithm, more).prop_map(|(rate, algorithm, more)| {
        format!("  - {{ name: api, limits: [{rate}], algorithm: {algorithm}{more} }}")
    })
}

fn history() -> impl Strategy<Value = History> {
    let styles = prop::sample::subsequence(
        vec![HeaderStyle::XUnix, HeaderStyle::Draft6, HeaderStyle::Draft11, HeaderStyle::Provider],
        0..=4,
    );
    let refusal_style = prop::sample::select(RefusalStyle::ALL.to_vec());
    let requests = prop::collection::vec(request(), 1..30);
    (rule(), styles, refusal_style, any::<bool>(), requests).prop_map(
        |(rule, styles, refusal_style, is_exposed, requests)| History {
            rule,
            styles,
            refusal_style,
            is_exposed,
            requests,
        },
    )
}

impl History {
    fn layer(&self) -> (RateLimitLayerBuilder<Store>, ManualClock) {
        let (layer, clock) = layer_by_client(policy(&self.rule));
        let layer = layer
            .fact("user", Header::from_static("x-client-id"))
            .fact("tenant", Header::from_static("x-tenant"))
            .cost(|request| {
                let cost = request.headers.get("x-cost").and_then(|cost| cost.to_str().ok());
                cost.and_then(|cost| cost.parse().ok()).unwrap_or(1)
            })
            .header_styles(self.styles.iter().copied())
            .refusal_style(self.refusal_style);
        (if self.is_exposed { layer.expose_headers() } else { layer }, clock)
    }
}

impl TestRequest {
    fn to_request(&self) -> Request<Body> {
        let mut request = Request::get("/").header("x-cost", self.cost);
        if let Some(client) = &self.client {
            request = request.header("x-client-id", client);
        }
        if let Some(tenant) = &self.tenant {
            request = request.header("x-tenant", tenant);
        }
        request.body(Body::empty()).unwrap()
    }
}

/// Sends a request to a layer that keeps the body type.
async fn send_kept(layer: RateLimitLayerBuilder<Store>, request: Request<Body>) -> TestResponse {
    let service = service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::from("hello")))
    });
    let layer = layer.build().keep_body();
    let response: Response<Body> = layer.layer(service).oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    TestResponse { status: head.status, headers: head.headers, body }
}

fn run(history: &History) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ((single, clock), (general, general_clock)) = (history.layer(), history.layer());
    let services: [Served; 2] = [hello(single), hello(general.expose_decision())];
    for request in &history.requests {
        clock.advance(request.wait);
        general_clock.advance(request.wait);
        let [response, expected] = services
            .each_ref()
            .map(|service| runtime.block_on(send(service, request.to_request())));
        assert_eq!(response.status, expected.status, "{request:?}");
        assert_eq!(response.headers, expected.headers, "{request:?}");
        assert_eq!(response.body, expected.body, "{request:?}");
    }
}

proptest! {
    #[test]
    fn single_limit_decides_like_the_general_path(history in history()) {
        run(&history);
    }
}

#[test]
fn policies_of_the_comparison_have_a_single_limit() {
    let (layer, _) = layer_by_client(policy("  - { name: api, limits: [3/s] }"));
    let layer = layer.build();
    let limiter = layer.limiter();
    assert!(limiter.with_active_policy(|policy| limiter.single_limit(policy).is_some()));
}

#[tokio::test]
async fn kept_body_is_that_of_the_service_or_of_the_refusal() {
    let by_client =
        |rate: &str| layer_by_client(policy(&format!("  - {{ name: api, limits: [{rate}] }}"))).0;
    let request = || super::fixture::get("/", "c1");
    let allowed = send_kept(by_client("1/s"), request()).await;
    assert_eq!((allowed.status.as_u16(), allowed.text()), (200, "hello"));
    assert_eq!(allowed.header("x-ratelimit-remaining"), Some("0"));
    let refused = send_kept(by_client("1/s").cost(|_| 2), request()).await;
    assert_eq!(refused.status, 429);
    assert!(refused.text().contains("rate_limit_exceeded"), "{}", refused.text());
}
