//! Clients that disconnect before their response: the concurrency slots that they would have received are released.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::server::{Flavor, Server};

use crate::redis::LONG_TIMEOUT;
use crate::resp_client::{RespClient, encode, readable, resp_address};
use crate::service::{Scratch, Service, eventually};

/// Longer than any test, so that no slot expires.
const TTL_MS: u64 = 3_600_000;

/// How late replies of Redis arrive while a client disconnects. Only the duration of a test depends on it.
const DELAY: Duration = Duration::from_secs(1);

const POLICY: &str = "
version: 1
rules:
  - name: jobs
    match: { path: /jobs }
    limits: [{ concurrency: 1, ttl: 1h }]
";

/// A node behind a proxy to Redis.
struct Node {
    server: Server,
    proxy: Proxy,
    service: Service,
    _scratch: Scratch,
}

impl Node {
    fn start() -> Self {
        let (server, scratch) = (Server::start(Flavor::Redis), Scratch::new());
        let proxy = Proxy::start(server.port());
        let policy = scratch.write("policy.yaml", POLICY);
        let (url, args) = (proxy.url(), ["--policy", &policy, "--resp", "127.0.0.1:0"]);
        let service = Service::start(&[&["--redis", &url][..], &LONG_TIMEOUT, &args].concat());
        Self { server, proxy, service, _scratch: scratch }
    }

    /// Sends a request that takes slots, and disconnects when Redis has granted them but the reply is still on its way.
    fn disconnect_during(&self, path: &str, body: &Value, slots: usize) {
        let body = body.to_string();
        self.proxy.set(Fault::Delay(DELAY));
        let mut client = self.service.client();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        client.send(format!("{head}{body}").as_bytes()).expect("it is sent");
        eventually("Redis grants the slots", || self.held() == slots);
        drop(client);
        self.proxy.set(Fault::Pass);
    }

    /// As [`disconnect_during`](Self::disconnect_during), with pipelined RESP commands. Replies stay late, because the
    /// node notices the end of the connection when it sends.
    fn disconnect_during_commands(&self, commands: &[u8], slots: usize) {
        self.proxy.set(Fault::Delay(3 * DELAY));
        let mut client = self.resp_client();
        client.send(commands).expect("they are sent");
        eventually("Redis grants the slots", || self.held() == slots);
        drop(client);
    }

    fn resp_client(&self) -> RespClient {
        RespClient::connect(resp_address(&self.service, "resp"))
    }

    /// Returns the number of keys with held slots.
    fn held(&self) -> usize {
        self.server.raw().call(&["KEYS", "rl:{*}:n*"]).array().len()
    }

    fn allows(&self, body: &Value) -> bool {
        self.service.post("/check", body.to_string()).json()["allowed"] == true
    }
}

fn inline(key: &str) -> Value {
    json!({"key": key, "limits": [{"algorithm": "concurrency", "limit": 1, "ttl_ms": TTL_MS}]})
}

#[test]
fn slot_of_a_disconnected_client_is_released() {
    let node = Node::start();
    let by_policy = json!({"facts": {"client": "c", "path": "/jobs"}});
    for body in [inline("a"), by_policy] {
        node.disconnect_during("/check", &body, 1);
        eventually("the slot is free", || node.held() == 0);
        assert!(node.allows(&body), "the slot can be taken again");
        assert!(!node.allows(&body), "a delivered permit stays valid");
        node.server.raw().call(&["FLUSHALL"]);
    }
}

#[test]
fn slots_of_a_disconnected_batch_are_released() {
    let node = Node::start();
    let batch = json!({"requests": [inline("a"), {"key": "b"}, inline("c")]});
    node.disconnect_during("/check/batch", &batch, 2);
    eventually("the slots are free", || node.held() == 0);
    assert!(node.allows(&inline("a")) && node.allows(&inline("c")));
}

#[test]
fn items_with_slots_are_decided_in_order() {
    let node = Node::start();
    for round in 0..20 {
        let item = inline(&format!("k{round}"));
        let batch = json!({"requests": vec![item; 5]}).to_string();
        let results = node.service.post("/check/batch", batch).json()["results"].clone();
        let allowed = [0, 1, 2, 3, 4].map(|nth| results[nth]["allowed"] == true);
        assert_eq!(allowed, [true, false, false, false, false], "{results}");
    }
}

#[test]
fn delivered_permit_survives_its_connection() {
    let node = Node::start();
    let mut client = node.service.client();
    assert_eq!(client.post("/check", inline("a").to_string()).json()["allowed"], true);
    let batch = json!({"requests": [inline("b")]}).to_string();
    assert_eq!(client.post("/check/batch", batch).json()["results"][0]["allowed"], true);
    drop(client);
    for _ in 0..20 {
        assert!(!node.allows(&inline("a")) && !node.allows(&inline("b")));
    }
}

/// A check over RESP that takes the slot of a client.
fn take_slot(client: &str) -> Vec<u8> {
    encode(&["TOLLGATE.CHECK", &format!("client={client}"), "path=/jobs"])
}

#[test]
fn slots_of_a_disconnected_resp_client_are_released() {
    let node = Node::start();
    for clients in [&["a"][..], &["b", "c", "d"]] {
        let commands: Vec<u8> = clients.iter().flat_map(|client| take_slot(client)).collect();
        node.disconnect_during_commands(&commands, clients.len());
        eventually("the slots are free", || node.held() == 0);
        node.proxy.set(Fault::Pass);
        let mut client = node.resp_client();
        client.send(&commands.repeat(2)).expect("they are sent");
        let allowed = [true, false].map(|_| {
            let replies = clients.iter().map(|_| readable(&client.reply().expect("a reply")));
            replies.filter(|reply| reply.starts_with("[1 ")).count()
        });
        assert_eq!(allowed, [clients.len(), 0], "the slots can be taken again, once");
        drop(client);
        for _ in 0..20 {
            assert_eq!(node.held(), clients.len(), "delivered permits survive their connection");
        }
        node.server.raw().call(&["FLUSHALL"]);
    }
}
