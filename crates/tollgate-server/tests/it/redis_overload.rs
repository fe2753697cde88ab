//! Too many requests for Redis at once: they are shed, Redis is not lost, and no limit is exceeded.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::json;
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::pause;
use tonic::Code;

use crate::client::Reply;
use crate::grpc_client::{GRPC, GrpcClient, descriptor, grpc_address, request};
use crate::metrics_text::Scrape;
use crate::openapi::{check, description};
use crate::redis::node;
use crate::resp_client::{RespClient, encode, readable, resp_address};
use crate::service::{Scratch, Service, eventually, run};

const BATCHES: usize = 24;
const BATCH_ITEMS: usize = 1000;
const SINGLES: usize = 40;

/// A rule for each `on_store_loss`, with windows that outlast any test.
const POLICY: &str = "
version: 1
defaults: { limit: 5/d }
rules:
  - { name: lenient, match: { path: /lenient }, limits: [1000/d], on_store_loss: allow }
  - { name: strict, match: { path: /strict }, limits: [1000/d], on_store_loss: deny }
  - { name: edge, match: { facts: { domain: edge } }, per: [descriptor], limits: [1000/d] }
  - { name: strict-edge, match: { facts: { domain: strict } }, per: [descriptor], limits: [1000/d], on_store_loss: deny }
  - { name: generous, match: { path: /generous }, limits: [{ rate: 1000000/d, algorithm: token_bucket }] }
";

fn batch(number: usize) -> String {
    let item = |nth: usize| {
        let path = if nth.is_multiple_of(2) { "/strict" } else { "/generous" };
        json!({"facts": {"client": format!("b{number}-{nth}"), "path": path}})
    };
    json!({"requests": (0..BATCH_ITEMS).map(item).collect::<Vec<_>>()}).to_string()
}

/// Results of batches.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Results {
    allowed: usize,
    shed: usize,
    /// Neither allowed by Redis nor shed.
    other: usize,
}

impl Results {
    /// Counts the results of a batch of this many items, without parsing them.
    fn add(&mut self, reply: &Reply, items: usize) {
        assert_eq!(reply.status, 200, "{}", reply.body);
        let count = |text: &str| reply.body.matches(text).count();
        let allowed = count(r#""verdict":"allow""#).min(count(r#""degraded":false"#));
        let shed = count(r#""status":503"#).min(count(r#""reason":"overloaded""#));
        self.allowed += allowed;
        self.shed += shed;
        self.other += items.abs_diff(allowed + shed);
    }
}

/// Sends batches from many connections until `is_done`. `begun` counts the connections that have sent one.
fn send_batches(service: &Service, begun: &AtomicUsize, is_done: &AtomicBool) -> Results {
    let results = Mutex::new(Results::default());
    thread::scope(|scope| {
        for number in 0..BATCHES {
            let results = &results;
            scope.spawn(move || {
                let (mut client, batch) = (service.client(), batch(number));
                let mut send = || {
                    let reply = client.post("/check/batch", &batch);
                    results.lock().expect("not poisoned").add(&reply, BATCH_ITEMS);
                };
                send();
                begun.fetch_add(1, Ordering::Relaxed);
                while !is_done.load(Ordering::Relaxed) {
                    send();
                }
            });
        }
    });
    results.into_inner().expect("not poisoned")
}

/// Sends single checks of one client and of others, by rules that allow, deny and share without the store.
fn send_singles(service: &Service) -> Vec<Reply> {
    let mut client = service.client();
    let check = |nth: usize| {
        let path = ["/", "/lenient", "/strict"][nth % 3];
        let name = if path == "/" { "exhausted".to_owned() } else { format!("s{nth}") };
        client.post("/check", json!({"facts": {"client": name, "path": path}}).to_string())
    };
    (0..SINGLES).map(check).collect()
}

fn is_shed(reply: &Reply) -> bool {
    reply.status == 503 && reply.json()["reason"] == "overloaded"
}

#[test]
fn batches_neither_lose_the_store_nor_shed_single_requests() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let service = node(&server, &["--policy", &scratch.write("policy.yaml", POLICY)]);
    for _ in 0..5 {
        assert_eq!(service.check("exhausted")["allowed"], true);
    }
    let (begun, is_done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (results, replies) = thread::scope(|scope| {
        let batches = scope.spawn(|| send_batches(&service, &begun, &is_done));
        let singles = scope.spawn(|| {
            let are_begun = || begun.load(Ordering::Relaxed) == BATCHES;
            eventually("all connections send batches", are_begun);
            send_singles(&service)
        });
        let replies = singles.join();
        is_done.store(true, Ordering::Relaxed);
        (batches.join().expect("batches succeed"), replies.expect("singles succeed"))
    });

    let mut shed = 0;
    for reply in &replies {
        if is_shed(reply) {
            shed += 1;
            continue;
        }
        let body = reply.json();
        assert_eq!((reply.status, &body["degraded"]), (200, &json!(false)), "{body}");
        assert_eq!(body["allowed"] == true, body["key"] != "exhausted", "{body}");
    }
    assert!(shed <= 2, "{shed} of {SINGLES} single requests were shed");
    assert!(results.other == 0 && results.allowed > 0, "{results:?}");
    assert_eq!(service.check("exhausted")["allowed"], false);
    let scrape = Scrape::of(&service);
    assert_eq!(scrape.value("tollgate_breaker_opened_total"), 0.0);
    assert_eq!(scrape.value("rate_limit_backend_errors_total"), 0.0);
    assert!(!service.log().contains("store lost"), "{}", service.log());
}

/// Connections that together send more items than may wait for Redis and be in flight.
const FILLERS: usize = 320;
/// Items of a batch that wait for Redis at the same time.
const CHUNK: usize = 64;

/// Sends batches of one chunk until `is_done`. Those that are shed are sent again, so that the queue stays full.
fn fill_queue(service: &Service, is_done: &AtomicBool) -> Results {
    let item = json!({"facts": {"client": "c", "path": "/generous"}});
    let batch = json!({"requests": vec![item; CHUNK]}).to_string();
    let (mut client, mut results) = (service.client(), Results::default());
    while !is_done.load(Ordering::Relaxed) {
        results.add(&client.post("/check/batch", &batch), CHUNK);
        (0..10).for_each(|_| pause());
    }
    results
}

#[test]
fn full_queue_sheds_requests_whatever_their_rule() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    // Longer than the test, so that no call times out.
    let timeout = ["--redis-timeout-ms", "60000"];
    let policy = scratch.write("policy.yaml", POLICY);
    let url = server.url();
    let front_ends = [&GRPC[..], &["--resp", "127.0.0.1:0"]].concat();
    let args = [&["--redis", &url, "--policy", &policy][..], &timeout, &front_ends].concat();
    let service = Service::start(&args);
    // Redis has replied within the timeout, so that it is not lost.
    assert_eq!(service.check("first")["allowed"], true);
    server.hang();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let fill = || fill_queue(&service, &is_done);
        let fillers: Vec<_> = (0..FILLERS).map(|_| scope.spawn(fill)).collect();
        let shed = || Scrape::of(&service).value("tollgate_shed_total");
        eventually("the queue is full", || shed() > 1000.0);
        assert_shed(&service);
        assert_shed_over_resp(&service);
        assert_shed_over_grpc(&service);
        is_done.store(true, Ordering::Relaxed);
        server.resume();
        for filler in fillers {
            assert_eq!(filler.join().expect("it succeeds").other, 0);
        }
    });
    assert_eq!(service.check("k")["degraded"], false);
    assert_eq!(service.get("/readyz").body, "ready\n");
    let (_, log) = service.stop();
    let lines = log.lines().filter(|line| line.contains("requests are shed")).count();
    assert!(lines == 1 && !log.contains("store lost"), "{log}");
}

/// Asserts how each call reports that it is shed.
fn assert_shed(service: &Service) {
    for path in ["/", "/lenient", "/strict"] {
        let body = json!({"facts": {"client": "c", "path": path}}).to_string();
        for call in ["/check", "/peek", "/refund", "/explain"] {
            let reply = service.post(call, &body);
            assert!(is_shed(&reply), "{call} {path}: {}", reply.body);
            assert_eq!(reply.header("retry-after"), Some("1"));
            assert_eq!(reply.header("content-type"), Some("application/problem+json"));
            check(&description(), call, "post", &reply);
        }
    }
    let scrape = Scrape::of(service);
    assert!(scrape.value("tollgate_shed_total") >= 12.0);
    assert_eq!(scrape.value("rate_limit_backend_errors_total"), 0.0);
    assert_eq!(scrape.value("tollgate_breaker_state"), 0.0);
    let ended = run(&["check", "c", "--server", &service.url()]);
    assert_eq!((ended.code, &*ended.stdout), (3, ""));
    let expected = "tollgate: 503: overloaded: too many calls to Redis are waiting";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
}

fn assert_shed_over_resp(service: &Service) {
    let mut client = RespClient::connect(resp_address(service, "resp"));
    let shed = "-OVERLOADED overloaded: too many calls to Redis are waiting";
    for path in ["/", "/lenient", "/strict"] {
        for command in ["CHECK", "PEEK", "REFUND"] {
            let reply = client.call(&format!("TOLLGATE.{command} c path={path}"));
            assert!(reply.starts_with(shed), "{command} {path}: {reply}");
        }
    }
    for command in ["CL.THROTTLE k 9 1 60", "THROTTLE k 9 1 60"] {
        let reply = client.call(command);
        assert!(reply.starts_with(shed), "{command}: {reply}");
    }
    // The connection goes on, and a pipeline keeps its order.
    let check = encode(&["TOLLGATE.CHECK", "c"]);
    client.send(&[check.clone(), encode(&["PING"]), check].concat()).expect("it is sent");
    let replies = [(); 3].map(|()| readable(&client.reply().expect("a reply")));
    let starts = replies.each_ref().map(|reply| reply.split(' ').next().unwrap_or_default());
    assert_eq!(starts, ["-OVERLOADED", "PONG", "-OVERLOADED"], "{replies:?}");
}

fn assert_shed_over_grpc(service: &Service) {
    let client = GrpcClient::connect(grpc_address(service));
    for domain in ["edge", "strict"] {
        for count in [1, 100] {
            let descriptors = vec![descriptor(&[("user", "u")]); count];
            let (code, message) = client.error(request(domain, descriptors));
            assert_eq!(code, Code::Unavailable, "{message}");
            assert!(message.starts_with("overloaded: "), "{message}");
        }
    }
}
