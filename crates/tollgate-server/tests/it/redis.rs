//! Helpers for services that share a real Redis server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tollgate_testkit::server::Server;

use crate::service::{Scratch, Service};

/// A Redis timeout that is long enough for a very slow machine.
pub(crate) const LONG_TIMEOUT: [&str; 2] = ["--redis-timeout-ms", "20000"];

/// Starts a node on this server with a long timeout.
pub(crate) fn node(server: &Server, args: &[&str]) -> Service {
    Service::start(&[&["--redis", &server.url()], &LONG_TIMEOUT[..], args].concat())
}

/// Writes a policy with this default limit. Windows should outlast any test.
pub(crate) fn policy(scratch: &Scratch, limit: &str) -> String {
    scratch.write("policy.yaml", &format!("version: 1\ndefaults: {{ limit: {limit} }}\n"))
}

/// Sends concurrent checks to all nodes, over three connections each, and returns how many were allowed.
pub(crate) fn admitted(nodes: &[&Service], key: &str, checks_each: usize) -> usize {
    let allowed = AtomicUsize::new(0);
    thread::scope(|scope| {
        for node in nodes.iter().flat_map(|node| [node, node, node]) {
            scope.spawn(|| {
                let mut client = node.client();
                for _ in 0..checks_each {
                    let reply = client.post("/check", format!(r#"{{"key":"{key}"}}"#));
                    assert_eq!(reply.status, 200, "{}", reply.body);
                    if reply.json()["allowed"] == true {
                        allowed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    allowed.into_inner()
}
