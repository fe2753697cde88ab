//! The layer allocates nothing for an allowed request, beyond what the header map of the response needs.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use tollgate::{HeaderStyle, Limiter, MemoryStore, Policy};
use tollgate_tower::{ClientAddress, PeerAddress, RateLimitLayer, RateLimitLayerBuilder};
use tower::{Layer, Service, service_fn};

use super::fixture::policy;

const REQUESTS: u32 = 3000;
/// More than the 1000 readings after which the clock of the process reads a file of the system once.
const WARM_UP: u32 = 1100;

type Hello = Response<Full<Bytes>>;

/// Responds with a header map that has space for the headers of the layer.
fn respond(_: Request<()>) -> Ready<Result<Hello, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"hello")));
    *response.headers_mut() = HeaderMap::with_capacity(6);
    ready(Ok(response))
}

fn layer(policy: Policy) -> RateLimitLayerBuilder<MemoryStore> {
    RateLimitLayer::builder(Limiter::new(MemoryStore::new(), policy))
}

fn million_per_day() -> Policy {
    policy("  - { name: api, limits: [1000000/d], algorithm: token_bucket }")
}

fn request(peer: IpAddr) -> Request<()> {
    let mut request = Request::get("/a").body(()).unwrap();
    request.extensions_mut().insert(PeerAddress(SocketAddr::new(peer, 4711)));
    request
}

/// Calls the service, and returns the number of headers.
fn call<V, B>(service: &mut V, request: Request<()>) -> usize
where
    V: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let future = pin!(service.call(request));
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(response)) => {
            assert_eq!(response.status(), 200);
            response.headers().len()
        }
        Poll::Ready(Err(error)) => match error {},
        Poll::Pending => panic!("the memory store decides at once"),
    }
}

/// Returns the allocations of many requests, after others that create the counter and the buffers of the thread.
fn allocations<V, B>(mut service: V, peer: IpAddr, headers: usize) -> u64
where
    V: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    for _ in 0..WARM_UP {
        assert_eq!(call(&mut service, request(peer)), headers);
    }
    let requests: Vec<_> = (0..REQUESTS).map(|_| request(peer)).collect();
    let measured = measure(|| {
        for request in requests {
            assert_eq!(call(&mut service, request), headers);
        }
    });
    measured.count_total
}

fn assert_no_allocation(layer: RateLimitLayerBuilder<MemoryStore>, peer: &str, headers: usize) {
    let peer = peer.parse().unwrap();
    let without_layer = allocations(service_fn(respond), peer, 0);
    let layer = layer.build();
    assert_eq!(allocations(layer.layer(service_fn(respond)), peer, headers), without_layer);
}

#[test]
fn allowed_request_allocates_nothing() {
    for peer in ["192.0.2.7", "255.255.255.255", "2001:db8:1111:2222:3333:4444:5555:6666"] {
        assert_no_allocation(layer(million_per_day()), peer, 3);
    }
}

#[test]
fn no_header_style_allocates() {
    for style in [HeaderStyle::XUnix, HeaderStyle::XDelta, HeaderStyle::Draft6] {
        assert_no_allocation(layer(million_per_day()).header_styles([style]), "192.0.2.7", 3);
    }
    let no_styles: [HeaderStyle; 0] = [];
    assert_no_allocation(layer(million_per_day()).header_styles(no_styles), "192.0.2.7", 0);
}

#[test]
fn rules_with_conditions_and_several_limits_allocate_nothing() {
    let rules = "  - { name: b, match: { path: /b }, limits: [1/d] }
  - { name: a, match: { method: GET, path: '/{name}' }, limits: [1000000/d, 9000000/w], algorithm: token_bucket }";
    assert_no_allocation(layer(policy(rules)), "192.0.2.7", 3);
}

#[test]
fn address_behind_proxies_allocates_nothing() {
    let layer = layer(million_per_day()).fact("client", ClientAddress::peer());
    assert_no_allocation(layer, "192.0.2.7", 3);
}
