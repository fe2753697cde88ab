//! gRPC with a real Redis: deadlines while Redis hangs, store loss, and exact limits over two nodes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tollgate_testkit::server::{Flavor, Server};
use tonic::{Code, Request, Status};

use crate::grpc_client::{
    DirectConnection, GRPC, GrpcClient, OK, RateLimitRequest, RateLimitResponse,
    call_with_deadline, descriptor, grpc_address, request,
};
use crate::redis::LONG_TIMEOUT;
use crate::service::{Scratch, Service, eventually};

/// Windows outlast any test.
const POLICY: &str = "
version: 1
rules:
  - { name: strict, match: { facts: { descriptor: strict=* } }, per: [descriptor], limits: [9/d], on_store_loss: deny }
  - { name: any, per: [domain, descriptor], limits: [{ rate: 100/d, algorithm: fixed_window }] }
";

fn node(server: &Server, scratch: &Scratch, args: &[&str]) -> (Service, GrpcClient) {
    let policy = scratch.write("policy.yaml", POLICY);
    let url = server.url();
    let common = ["--redis", &url, "--policy", &policy, "--probe-ms", "600000"];
    let service = Service::start(&[&GRPC, &common[..], args].concat());
    let client = GrpcClient::connect(grpc_address(&service));
    (service, client)
}

/// Calls on a new connection, with this deadline.
fn call_until(
    (service, client): &(Service, GrpcClient),
    request: RateLimitRequest,
    deadline: Duration,
) -> Result<RateLimitResponse, Status> {
    client.block_on(async {
        let connection = DirectConnection::connect(grpc_address(service)).await;
        call_with_deadline(connection, request, deadline).await
    })
}

#[test]
fn two_nodes_admit_exactly_the_limit() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let nodes = [node(&server, &scratch, &LONG_TIMEOUT), node(&server, &scratch, &LONG_TIMEOUT)];
    let admitted = AtomicUsize::new(0);
    let count = |is_allowed: bool| admitted.fetch_add(usize::from(is_allowed), Ordering::Relaxed);
    thread::scope(|scope| {
        for (service, _) in nodes.iter().flat_map(|node| [node, node]) {
            scope.spawn(|| {
                let client = GrpcClient::connect(grpc_address(service));
                for _ in 0..40 {
                    count(client.status("edge", &[("user", "shared")]).code == OK);
                }
            });
        }
        for (service, _) in &nodes {
            scope.spawn(|| {
                let body = r#"{"facts":{"domain":"edge","descriptor":"user=shared"}}"#;
                let mut client = service.client();
                for _ in 0..40 {
                    count(client.post("/check", body).json()["allowed"] == true);
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), 100);
}

#[test]
fn deadline_holds_while_redis_hangs() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    // Nothing but the deadline ends a call.
    let node =
        node(&server, &scratch, &["--redis-timeout-ms", "60000", "--breaker-failures", "1000"]);
    let (service, client) = &node;
    let user = || request("edge", [descriptor(&[("user", "u")])]);
    let two = || request("edge", [descriptor(&[("user", "u")]), descriptor(&[("user", "v")])]);
    assert_eq!(client.status("edge", &[("user", "u")]).limit_remaining, 99);
    server.hang();
    for call in [user(), two()] {
        let start = Instant::now();
        let error = call_until(&node, call, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{error:?}");
        // Far below the timeout of Redis; a busy machine may take long.
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }
    // A deadline that has passed is not sent at all.
    for _ in 0..5 {
        let error = call_until(&node, user(), Duration::ZERO).unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{error:?}");
    }
    assert!(service.get("/metrics").body.contains("tollgate_ready 1"), "the node is not blocked");
    server.resume();
    eventually("Redis answers", || client.call(user()).is_ok());
    // The calls with 20 ms were sent, or withdrawn before; those with a passed deadline never took anything.
    let remaining = client.status("edge", &[("user", "u")]).limit_remaining;
    assert!((95..=97).contains(&remaining), "{remaining}");
}

#[test]
fn calls_that_wait_behind_others_are_withdrawn_at_their_deadline() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let (service, client) =
        node(&server, &scratch, &["--redis-timeout-ms", "60000", "--breaker-failures", "1000"]);
    assert_eq!(client.status("edge", &[("user", "u")]).limit_remaining, 99);
    server.hang();
    let codes: Vec<Code> = client.block_on(async {
        let connection = DirectConnection::connect(grpc_address(&service)).await;
        let calls = (0..50).map(|_| {
            let request = request("edge", [descriptor(&[("user", "u")])]);
            let deadline = Duration::from_millis(50);
            tokio::spawn(call_with_deadline(connection.clone(), request, deadline))
        });
        let calls: Vec<_> = calls.collect();
        let mut codes = Vec::new();
        for call in calls {
            codes.push(call.await.expect("no panic").expect_err("an error").code());
        }
        codes
    });
    assert!(codes.iter().all(|code| *code == Code::DeadlineExceeded), "{codes:?}");
    server.resume();
    let last = || client.call(request("edge", [descriptor(&[("user", "u")])]));
    eventually("Redis answers", || last().is_ok());
    let remaining = last().unwrap().statuses.remove(0).limit_remaining;
    println!("{remaining} remain");
    // Of 50 calls, those that waited for the reply to earlier ones were never sent.
    assert!(remaining > 100 - 1 - 50, "{remaining}");
}

#[test]
fn store_loss_with_deny_is_unavailable() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let (_service, client) = node(&server, &scratch, &[]);
    assert_eq!(client.status("edge", &[("strict", "x")]).limit_remaining, 8);
    server.kill();
    let strict = || request("edge", [descriptor(&[("user", "u")]), descriptor(&[("strict", "x")])]);
    for _ in 0..8 {
        let error = client.call(strict()).unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{error:?}");
        assert!(error.message().contains("on_store_loss: deny"), "{error:?}");
    }
    let status = client.status("edge", &[("user", "u")]);
    assert_eq!((status.code, status.current_limit.is_some()), (OK, true), "other rules go on");
    let metadata = Request::new(request("edge", [descriptor(&[("user", "u")])]));
    assert!(client.call_with(metadata).is_ok());
}

#[test]
fn hung_redis_is_decided_locally_before_the_deadline() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let node = node(&server, &scratch, &["--redis-timeout-ms", "50"]);
    assert_eq!(node.1.status("edge", &[("user", "u")]).code, OK);
    server.hang();
    // A deadline that only a very slow machine misses.
    let call = |entries: &[(&str, &str)]| {
        call_until(&node, request("edge", [descriptor(entries)]), Duration::from_secs(30))
    };
    for _ in 0..10 {
        let response = call(&[("user", "u")]).expect("a decision by the share of this node");
        assert_eq!(response.overall_code, OK);
    }
    assert_eq!(call(&[("strict", "u")]).unwrap_err().code(), Code::Unavailable);
    server.resume();
}
