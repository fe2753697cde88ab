//! Slots of requests whose connection is upgraded to another protocol, with a real HTTP server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, any};
use http::{Request, Response, StatusCode};
use tollgate::Costs;
use tollgate_testkit::wait::eventually;
use tollgate_tower::{Estimate, Header, HeldSlots, RateLimitLayer, RateLimitLayerBuilder};

use crate::inbound::fixture::{Store, limiter, policy};

/// Upgrades the connection to a protocol that returns every byte.
async fn echo(slots: Option<HeldSlots>, request: Request<Body>) -> Response<Body> {
    if !request.headers().contains_key("upgrade") {
        return StatusCode::OK.into_response();
    }
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let (mut read, mut write) = tokio::io::split(hyper_util::rt::TokioIo::new(upgraded));
            let _ = tokio::io::copy(&mut read, &mut write).await;
        }
        drop(slots);
    });
    let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    response.header("connection", "upgrade").header("upgrade", "echo").body(Body::empty()).unwrap()
}

/// Serves `app` until the test ends.
fn serve(app: Router) -> (tokio::runtime::Runtime, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move { axum::serve(listener, app).await });
    (runtime, address)
}

const ONE_SLOT: &str = "  - { name: chat, limits: [{ concurrency: 1, ttl: 30s }] }";

fn layer(rules: &str) -> RateLimitLayerBuilder<Store> {
    let (limiter, _) = limiter(policy(rules));
    RateLimitLayer::builder(limiter).fact("client", Header::from_static("x-client-id"))
}

fn app(route: MethodRouter, layer: RateLimitLayerBuilder<Store>) -> Router {
    Router::new().route("/", route).layer(layer.build())
}

/// A handler that does not hold the slots.
fn echo_without_slots() -> MethodRouter {
    any(|request| echo(None, request))
}

/// Sends a request, and returns the connection with the status of the response.
fn request(address: SocketAddr, headers: &str) -> (TcpStream, u16) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!("GET / HTTP/1.1\r\nhost: t\r\nx-client-id: c1\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut response = Vec::new();
    while !response.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        response.extend(byte);
    }
    let text = String::from_utf8(response).unwrap();
    (stream, text.split(' ').nth(1).unwrap().parse().unwrap())
}

const UPGRADE: &str = "connection: upgrade\r\nupgrade: echo\r\n";

#[test]
fn slot_is_held_until_the_upgraded_connection_closes() {
    let (_runtime, address) = serve(app(any(echo), layer(ONE_SLOT)));
    let (mut upgraded, status) = request(address, UPGRADE);
    assert_eq!(status, 101);
    upgraded.write_all(b"hello").unwrap();
    let mut echoed = [0; 5];
    upgraded.read_exact(&mut echoed).unwrap();
    assert_eq!(&echoed, b"hello");
    assert_eq!(request(address, "").1, 429, "the connection holds the only slot");
    drop(upgraded);
    eventually("the slot is free", || request(address, "").1 == 200);
}

#[test]
fn upgrade_is_refused_if_its_slots_are_not_held() {
    let reserving = layer(ONE_SLOT).reserve(|_| Estimate::of(Costs::requests(1)));
    for layer in [layer(ONE_SLOT), reserving] {
        let (_runtime, address) = serve(app(echo_without_slots(), layer));
        assert_eq!(request(address, UPGRADE).1, 501);
        eventually("the slot is free", || request(address, "").1 == 200);
    }
}

#[test]
fn request_whose_upgrade_is_not_accepted_is_served() {
    // curl offers HTTP/2 in this way. The handler does not accept it.
    let (_runtime, address) = serve(app(any(|| async { "hello" }), layer(ONE_SLOT)));
    for _ in 0..3 {
        eventually("the slot is free", || {
            request(address, "connection: upgrade\r\nupgrade: h2c\r\n").1 == 200
        });
    }
}

#[test]
fn upgrade_without_slots_is_served() {
    let layer = layer("  - { name: api, limits: [10/min] }");
    let (_runtime, address) = serve(app(echo_without_slots(), layer));
    assert_eq!(request(address, UPGRADE).1, 101);
}
