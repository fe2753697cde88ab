//! Too many requests for Redis at once: they are shed, Redis is not lost, and no limit is exceeded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::pause;

use crate::client::Reply;
use crate::metrics_text::Scrape;
use crate::openapi::{check, description};
use crate::redis::node;
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
";

fn batch(number: usize) -> String {
    let item = |nth: usize| {
        let path = if nth.is_multiple_of(2) { "/strict" } else { "/" };
        json!({"facts": {"client": format!("b{number}-{nth}"), "path": path}})
    };
    json!({"requests": (0..BATCH_ITEMS).map(item).collect::<Vec<_>>()}).to_string()
}

/// Sends batches from many connections until `is_done`, and returns all results.
fn send_batches(service: &Service, is_done: &AtomicBool) -> Vec<Value> {
    thread::scope(|scope| {
        let senders: Vec<_> = (0..BATCHES)
            .map(|number| {
                scope.spawn(move || {
                    let (mut client, mut results) = (service.client(), Vec::new());
                    for round in 0.. {
                        let reply = client.post("/check/batch", batch(number * 1000 + round));
                        assert_eq!(reply.status, 200, "{}", reply.body);
                        let found = reply.json()["results"].as_array().expect("a list").clone();
                        assert_eq!(found.len(), BATCH_ITEMS);
                        results.extend(found);
                        if is_done.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                    results
                })
            })
            .collect();
        senders.into_iter().flat_map(|sender| sender.join().expect("it succeeds")).collect()
    })
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

fn is_shed(status: &Value, body: &Value) -> bool {
    *status == json!(503) && body["reason"] == "overloaded"
}

#[test]
fn batches_neither_lose_the_store_nor_shed_single_requests() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let service = node(&server, &["--policy", &scratch.write("policy.yaml", POLICY)]);
    for _ in 0..5 {
        assert_eq!(service.check("exhausted")["allowed"], true);
    }
    let is_done = AtomicBool::new(false);
    let (results, replies) = thread::scope(|scope| {
        let batches = scope.spawn(|| send_batches(&service, &is_done));
        let singles = scope.spawn(|| send_singles(&service));
        let replies = singles.join().expect("singles succeed");
        is_done.store(true, Ordering::Relaxed);
        (batches.join().expect("batches succeed"), replies)
    });

    let mut shed = 0;
    for reply in &replies {
        let body = reply.json();
        if is_shed(&json!(reply.status), &body) {
            shed += 1;
            continue;
        }
        assert_eq!((reply.status, &body["degraded"]), (200, &json!(false)), "{body}");
        assert_eq!(body["allowed"] == true, body["key"] != "exhausted", "{body}");
    }
    assert!(shed <= 2, "{shed} of {SINGLES} single requests were shed");
    for item in &results {
        let is_decided = item["allowed"] == true && item["degraded"] == false;
        assert!(is_decided || is_shed(&item["status"], item), "{item}");
    }
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

/// Sends batches of one chunk until `is_done`, and returns all results. Batches that are shed are sent again, so that
/// the queue stays full.
fn fill_queue(service: &Service, is_done: &AtomicBool) -> Vec<Value> {
    let item = json!({"facts": {"client": "c", "path": "/lenient"}});
    let batch = json!({"requests": vec![item; CHUNK]}).to_string();
    let (mut client, mut results) = (service.client(), Vec::new());
    while !is_done.load(Ordering::Relaxed) {
        let reply = client.post("/check/batch", &batch).json();
        results.extend(reply["results"].as_array().expect("a list").iter().cloned());
        pause();
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
    let service = Service::start(&[&["--redis", &url, "--policy", &policy][..], &timeout].concat());
    server.hang();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let fill = || fill_queue(&service, &is_done);
        let fillers: Vec<_> = (0..FILLERS).map(|_| scope.spawn(fill)).collect();
        let shed = || Scrape::of(&service).value("tollgate_shed_total");
        eventually("the queue is full", || shed() > 1000.0);
        assert_shed(&service);
        is_done.store(true, Ordering::Relaxed);
        server.resume();
        let results = fillers.into_iter().flat_map(|filler| filler.join().expect("it succeeds"));
        let (shed, decided): (Vec<Value>, Vec<Value>) =
            results.partition(|item| is_shed(&item["status"], item));
        assert!(!shed.is_empty() && !decided.is_empty());
        assert!(decided.iter().all(|item| item["degraded"] == false));
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
            assert!(is_shed(&json!(reply.status), &reply.json()), "{call} {path}: {}", reply.body);
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
