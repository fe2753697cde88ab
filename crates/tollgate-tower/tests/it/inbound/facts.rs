//! Facts and the keys that are counted.

use std::net::SocketAddr;

use axum::body::Body;
use axum::routing::get as route;
use axum::{Router, extract::ConnectInfo};
use http::{HeaderName, Request, Response, StatusCode};
use tollgate_tower::{
    ApiKey, ClientAddress, Header, MatchedRoute, PeerAddress, RateLimitDecision, RateLimitLayer,
    RequestHead, TrustedProxies,
};
use tower::ServiceExt;

use crate::inbound::fixture::{
    get, hello, layer_by_client, limiter, policy, send, served, single_limit,
};

/// The SHA-256 of `s3cret`.
const DIGEST: &str = "sha256:1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0";

fn request_from(peer: &str) -> Request<Body> {
    let mut request = Request::get("/").body(Body::empty()).unwrap();
    let peer: SocketAddr = peer.parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    request
}

#[tokio::test]
async fn clients_do_not_affect_each_other() {
    let (builder, _) = layer_by_client(single_limit("1/min"));
    let service = hello(builder);
    for client in ["c1", "c2", "c3"] {
        assert_eq!(send(&service, get("/", client)).await.status.as_u16(), 200);
    }
    for client in ["c1", "c2", "c3"] {
        assert_eq!(send(&service, get("/", client)).await.status.as_u16(), 429);
    }
}

#[tokio::test]
async fn client_defaults_to_peer_and_ipv6_to_its_network() {
    let (limiter, _) = limiter(single_limit("1/min"));
    let service = hello(RateLimitLayer::builder(limiter));
    for (peer, status) in [
        ("192.0.2.1:1", 200),
        ("192.0.2.1:2", 429),
        ("[::ffff:192.0.2.1]:3", 429),
        ("192.0.2.2:1", 200),
        ("[2001:db8:1:2::1]:1", 200),
        ("[2001:db8:1:2:ffff::9]:1", 429),
        ("[2001:db8:1:3::1]:1", 200),
    ] {
        assert_eq!(send(&service, request_from(peer)).await.status.as_u16(), status, "{peer}");
    }
    let mut request = Request::get("/").body(Body::empty()).unwrap();
    request.extensions_mut().insert(PeerAddress("192.0.2.1:9".parse().unwrap()));
    assert_eq!(send(&service, request).await.status.as_u16(), 429);
}

#[tokio::test]
async fn ipv6_addresses_of_one_network_are_one_client() {
    let (limiter, _) = limiter(single_limit("7/min"));
    let service = hello(RateLimitLayer::builder(limiter));
    let mut passed = 0;
    for nth in 0..10_000_u32 {
        let peer = format!("[2001:db8:1:2:{:x}:{:x}::1]:1", nth / 7, nth);
        passed += u32::from(send(&service, request_from(&peer)).await.status == StatusCode::OK);
    }
    assert_eq!(passed, 7);
}

#[tokio::test]
async fn untrusted_peer_cannot_forge_its_address() {
    let (limiter, _) = limiter(single_limit("1/min"));
    let address = ClientAddress::behind_proxies(TrustedProxies::parse(["10.0.0.0/8"]).unwrap());
    let service = hello(RateLimitLayer::builder(limiter).fact("client", address));
    let forwarded = |peer: &str, by: &str| {
        let mut request = request_from(peer);
        request.headers_mut().append("x-forwarded-for", by.parse().unwrap());
        request.headers_mut().append("forwarded", format!("for={by}").parse().unwrap());
        request
    };
    assert_eq!(send(&service, forwarded("192.0.2.1:1", "203.0.113.1")).await.status.as_u16(), 200);
    for nth in 2..50 {
        let spoofed = forwarded("192.0.2.1:1", &format!("203.0.113.{nth}"));
        assert_eq!(send(&service, spoofed).await.status.as_u16(), 429);
    }
    // IPv6 clients are counted per /64.
    let first = forwarded("10.0.0.1:1", "2001:db8:1:2::1");
    assert_eq!(send(&service, first).await.status.as_u16(), 200);
    let second = forwarded("10.0.0.1:1", "2001:db8:1:2:ffff::2");
    assert_eq!(send(&service, second).await.status.as_u16(), 429);
    // The proxy's entry is trusted, the client's entry before it is not.
    let forwarded_client = forwarded("10.0.0.1:1", "203.0.113.1");
    assert_eq!(send(&service, forwarded_client).await.status.as_u16(), 200);
    let smuggled = forwarded("10.0.0.1:1", "198.51.100.1, 203.0.113.1");
    assert_eq!(send(&service, smuggled).await.status.as_u16(), 429);
}

#[tokio::test]
async fn api_key_selects_its_tier() {
    let text = format!(
        "version: 1\ntiers: {{ gold: [\"{DIGEST}\"] }}\nrules:\n\
         \x20 - {{ name: gold, match: {{ tier: gold }}, per: [api_key], limits: [3/min] }}\n\
         \x20 - {{ name: all, per: [], limits: [1/min] }}"
    );
    let policy =
        tollgate::Policy::from_yaml("p.yaml", &text, tollgate::Policy::builtin_limit()).unwrap();
    let (limiter, _) = limiter(policy);
    let builder = RateLimitLayer::builder(limiter);
    let builder = builder.fact("api_key", ApiKey::header(HeaderName::from_static("x-api-key")));
    let service = hello(builder.fact("api_key", ApiKey::bearer()));
    let request_with =
        |name: &str, key: &str| Request::get("/").header(name, key).body(Body::empty()).unwrap();
    for (request, limit, remaining) in [
        (request_with("x-api-key", "s3cret"), "3", "2"),
        (request_with("authorization", "bearer s3cret"), "3", "1"),
        (request_with("authorization", "Basic s3cret"), "1", "0"),
        (request_with("x-api-key", "s3cret"), "3", "0"),
        // The digest itself is not a valid key.
        (request_with("x-api-key", DIGEST), "1", "0"),
    ] {
        let response = send(&service, request).await;
        assert_eq!(response.header("x-ratelimit-limit"), Some(limit));
        assert_eq!(response.header("x-ratelimit-remaining"), Some(remaining));
    }
}

#[tokio::test]
async fn missing_fact_follows_the_rule() {
    let rules = |missing: &str| {
        policy(&format!("  - {{ name: api, limits: [2/min], missing: {missing} }}"))
    };
    let unnamed = || Request::get("/").body(Body::empty()).unwrap();
    for (missing, statuses) in
        [("share", [200, 200, 429]), ("skip", [200, 200, 200]), ("deny", [429, 429, 429])]
    {
        let (builder, _) = layer_by_client(rules(missing));
        let service = hello(builder);
        for status in statuses {
            assert_eq!(send(&service, unnamed()).await.status.as_u16(), status, "{missing}");
        }
    }
}

#[tokio::test]
async fn repeated_header_counts_as_missing() {
    let (builder, _) = layer_by_client(policy("  - { name: api, limits: [1/min], missing: deny }"));
    let mut request = get("/", "c1");
    request.headers_mut().append("x-client-id", "c2".parse().unwrap());
    assert_eq!(send(&hello(builder), request).await.status.as_u16(), 429);
}

#[tokio::test]
async fn closure_can_read_extensions() {
    #[derive(Clone)]
    struct User(&'static str);
    let (limiter, _) = limiter(policy("  - { name: api, per: [user], limits: [1/min] }"));
    let user =
        |request: &RequestHead<'_>| request.extensions.get::<User>().map(|user| user.0.to_owned());
    let service = hello(RateLimitLayer::builder(limiter).fact("user", user));
    let request_of = |user: &'static str| {
        let mut request = Request::get("/").body(Body::empty()).unwrap();
        request.extensions_mut().insert(User(user));
        request
    };
    assert_eq!(send(&service, request_of("ann")).await.status.as_u16(), 200);
    assert_eq!(send(&service, request_of("ben")).await.status.as_u16(), 200);
    assert_eq!(send(&service, request_of("ann")).await.status.as_u16(), 429);
}

#[tokio::test]
async fn matched_route_is_counted_by_its_template() {
    let rules = "  - { name: users, match: { facts: { route: \"/users/{id}\" } }, per: [client, route], limits: [2/min] }";
    let (limiter, _) = limiter(policy(rules));
    let builder = RateLimitLayer::builder(limiter).fact("route", MatchedRoute);
    let layer = builder.fact("client", Header::from_static("x-client-id")).build();
    let app: Router = Router::new()
        .route("/users/{id}", route(async || "user"))
        .route("/other", route(async || "other"))
        .layer(layer);
    let mut statuses = Vec::new();
    for path in ["/users/1", "/users/2", "/users/3", "/other"] {
        statuses.push(app.clone().oneshot(get(path, "c1")).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429, 200]);
}

#[tokio::test]
async fn policy_defines_the_sources() {
    let text = "version: 1
facts: { client: [{ header: x-client-id }, { header: authorization, digest: true }, ip] }";
    let policy =
        tollgate::Policy::from_yaml("p.yaml", text, tollgate::Policy::builtin_limit()).unwrap();
    let addresses = ClientAddress::behind_proxies(TrustedProxies::parse(["10.0.0.1"]).unwrap());
    let (limiter, _) = limiter(policy);
    let builder = RateLimitLayer::builder(limiter).facts_from_policy(addresses).expose_decision();
    let service = served(builder, |request| {
        let decision = request.extensions().get::<RateLimitDecision>().unwrap();
        Response::new(Body::from(decision.key().to_owned()))
    });
    for (name, value, client) in [
        ("x-client-id", "c1", "c1"),
        ("authorization", "s3cret", DIGEST),
        ("x-other", "c1", "2001:db8::"),
    ] {
        let mut request = request_from("10.0.0.1:80");
        request.headers_mut().insert("x-forwarded-for", "1.1.1.1, 2001:db8::7".parse().unwrap());
        request.headers_mut().insert(name, value.parse().unwrap());
        assert_eq!(send(&service, request).await.text(), client);
    }
    let direct = send(&service, request_from("192.0.2.7:80")).await;
    assert_eq!(direct.text(), "192.0.2.7", "without headers, the peer is the client");
}

#[tokio::test]
async fn too_long_path_is_refused() {
    let (builder, _) = layer_by_client(single_limit("100/min"));
    let service = hello(builder);
    let path = |length: usize| format!("/{}", "x".repeat(length - 1));
    assert_eq!(send(&service, get(&path(1024), "c1")).await.status.as_u16(), 200);
    let refused = send(&service, get(&path(1025), "c1")).await;
    assert_eq!(refused.status.as_u16(), 414);
    assert!(refused.text().contains(r#""error":"path_too_long""#), "{}", refused.text());
    assert_eq!(send(&service, get("/", "c1")).await.header("x-ratelimit-remaining"), Some("98"));
}
