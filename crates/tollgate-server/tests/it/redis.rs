//! Services that share a real server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tollgate_testkit::server::Server;

use crate::service::{Scratch, Service};

/// Long enough for a machine that is very slow: what must succeed does not fail for time.
pub(crate) const PATIENT: [&str; 2] = ["--redis-timeout-ms", "20000"];

/// A node on this server, which waits for it.
pub(crate) fn node(server: &Server, args: &[&str]) -> Service {
    Service::start(&[&["--redis", &server.url()], &PATIENT[..], args].concat())
}

/// A policy whose windows outlast any test: what is counted stays counted.
pub(crate) fn policy(scratch: &Scratch, limit: &str) -> String {
    scratch.write("policy.yaml", &format!("version: 1\ndefaults: {{ limit: {limit} }}\n"))
}

/// How many of so many checks are allowed, asked of all nodes at once, three connections each.
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
