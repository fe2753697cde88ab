//! Graceful shutdown: not ready, still serving, no aborted request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, Reply};
use crate::service::{Service, eventually, tollgate};

fn is_last(reply: &Reply) -> bool {
    reply.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

/// Sends requests until a response closes the connection. Returns the number of responses.
pub(crate) fn check_until_closed(mut client: Client, responses: &AtomicU64) -> u64 {
    let mut count = 0;
    loop {
        let reply = client.try_post("/check", br#"{"key":"k","cost":0}"#);
        let reply =
            reply.unwrap_or_else(|error| panic!("aborted after {count} responses: {error}"));
        assert_eq!(reply.status, 200, "{}", reply.body);
        count += 1;
        responses.fetch_add(1, Ordering::Relaxed);
        if is_last(&reply) {
            return count;
        }
    }
}

fn shuts_down_under_load(signal: &str) {
    let mut service = Service::start(&["--drain-ms", "1500"]);
    let responses: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|threads| {
        let clients: Vec<_> = responses
            .iter()
            .map(|responses| {
                let client = service.client();
                threads.spawn(|| check_until_closed(client, responses))
            })
            .collect();
        eventually("all clients are served", || {
            responses.iter().all(|count| count.load(Ordering::Relaxed) > 100)
        });
        service.signal(signal);
        for client in clients {
            assert!(client.join().expect("no request is aborted") > 100);
        }
    });
    let (status, log) = service.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("draining") && log.contains("stopped"), "{log}");
    assert!(!log.contains("aborting") && !log.contains("panicked"), "{log}");
}

#[test]
fn sigterm_under_load_loses_no_request() {
    shuts_down_under_load("TERM");
}

#[test]
fn sigint_under_load_loses_no_request() {
    shuts_down_under_load("INT");
}

#[test]
fn draining_node_is_alive_not_ready_and_decides() {
    let mut service = Service::start(&["--drain-ms", "2000"]);
    assert_eq!(service.get("/readyz").status, 200);
    service.signal("TERM");
    service.wait_for_log("draining");
    let ready = service.get("/readyz");
    assert_eq!((ready.status, ready.body.as_str()), (503, "draining\n"));
    assert!(is_last(&ready));
    let alive = service.get("/healthz");
    assert_eq!((alive.status, alive.body.as_str()), (200, "ok\n"));
    assert_eq!(service.check("new")["remaining"], 99, "new connections are still served");
    assert_eq!(service.get("/api/status").json()["ready"], false);
    assert_eq!(service.wait().0.code(), Some(0));
}

#[test]
fn incomplete_request_is_completed_during_shutdown() {
    for drain in ["0", "300"] {
        let mut service = Service::start(&["--drain-ms", drain]);
        let mut client = service.client();
        let body = r#"{"key":"late"}"#;
        let head = format!(
            "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
             expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.send(head.as_bytes()).unwrap();
        assert_eq!(client.reply().unwrap().status, 100, "the server waits for the body");
        service.signal("TERM");
        service.wait_for_log("draining");
        let stopped = service.address();
        eventually("the listener is closed", || Client::try_connect(stopped).is_err());
        client.send(body.as_bytes()).unwrap();
        let reply = client.reply().expect("a response to the request in progress");
        assert_eq!((reply.status, is_last(&reply)), (200, true), "{}", reply.body);
        assert_eq!(service.wait().0.code(), Some(0));
    }
}

#[test]
fn idle_connections_do_not_delay_shutdown() {
    let mut service = Service::start(&["--drain-ms", "0"]);
    let mut idle: Vec<Client> = (0..20).map(|_| service.client()).collect();
    for client in idle.iter_mut().take(10) {
        assert_eq!(client.get("/healthz").status, 200);
    }
    let start = Instant::now();
    service.signal("TERM");
    assert_eq!(service.wait().0.code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}

#[test]
fn port_can_be_bound_again_immediately() {
    let service = Service::start(&["--drain-ms", "0"]);
    let address = service.address().to_string();
    let mut client = service.client();
    assert_eq!(client.get("/healthz").status, 200);
    let (status, _) = service.stop();
    assert_eq!(status.code(), Some(0));
    let next = Service::start_as(&mut tollgate(&["serve", "--http", &address]));
    assert_eq!(next.address().to_string(), address);
    assert_eq!(next.check("k")["remaining"], 99);
}

#[test]
fn both_listeners_drain() {
    let mut service = Service::start(&["--admin", "127.0.0.1:0", "--drain-ms", "1500"]);
    let admin = service.admin_address();
    service.signal("TERM");
    service.wait_for_log("draining");
    assert_eq!(Client::connect(admin).get("/readyz").status, 503);
    assert_eq!(Client::connect(admin).get("/api/status").status, 200);
    assert_eq!(service.check("k")["allowed"], true);
    assert_eq!(service.wait().0.code(), Some(0));
}

#[test]
fn reconnecting_clients_lose_no_request() {
    let service = Service::start(&["--drain-ms", "300"]);
    let address = service.address();
    let clients: Vec<_> = (0..8)
        .map(|n| {
            thread::spawn(move || {
                let (mut lost, mut not_accepted) = (Vec::new(), 0);
                // The loop stops at a refused connection; an accepted one must get a response.
                while let Ok(mut client) = Client::try_connect(address) {
                    let mut is_accepted = false;
                    loop {
                        match client.try_post("/check", format!(r#"{{"key":"c{n}"}}"#).as_bytes()) {
                            Ok(reply) if reply.header("connection") == Some("close") => break,
                            Ok(_) => is_accepted = true,
                            Err(error) if is_accepted => {
                                lost.push(error);
                                break;
                            }
                            Err(_) => {
                                not_accepted += 1;
                                break;
                            }
                        }
                    }
                }
                (lost, not_accepted)
            })
        })
        .collect();
    eventually("the clients are served", || service.check("probe")["count"].as_u64() > Some(3));
    let (status, _) = service.stop();
    assert!(status.success());
    for client in clients {
        let (lost, not_accepted) = client.join().unwrap();
        assert!(lost.is_empty(), "{lost:?}");
        // The kernel may accept one more connection of each client between the last `accept` and the close.
        assert!(not_accepted <= 1, "{not_accepted} connections without a response");
    }
}

#[test]
fn second_signal_skips_the_drain() {
    let service = Service::start(&["--drain-ms", "600000"]);
    service.signal("TERM");
    service.wait_for_log("draining");
    let (status, _) = service.stop();
    assert!(status.success());
}
