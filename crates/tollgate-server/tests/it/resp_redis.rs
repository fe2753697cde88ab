//! RESP with Redis as the store: nodes share counters, and the loss of Redis is an error or a degraded decision.

use std::thread;

use tollgate_testkit::server::{Flavor, Server};

use crate::redis::LONG_TIMEOUT;
use crate::resp_client::{RespClient, encode, readable, start};
use crate::service::{Scratch, eventually};

/// A rule for each `on_store_loss`, with windows that outlast any test.
const POLICY: &str = "
version: 1
defaults: { limit: 100/d }
rules:
  - { name: strict, match: { path: /strict }, limits: [9/d], on_store_loss: deny }
  - { name: lenient, match: { path: /lenient }, limits: [9/d], on_store_loss: allow }
";

/// The first words that make Redis clients retry or reconnect by themselves.
const RETRIED: [&str; 7] =
    ["-LOADING", "-TRYAGAIN", "-BUSY", "-CLUSTERDOWN", "-READONLY", "-MOVED", "-ASK"];

#[test]
fn nodes_share_the_counters_of_all_front_ends() {
    let (redis, scratch) = (Server::start(Flavor::Redis), Scratch::new());
    let (url, policy) = (redis.url(), scratch.write("policy.yaml", POLICY));
    let args = [&["--redis", &*url, "--policy", &policy][..], &LONG_TIMEOUT].concat();
    let nodes = [start(&args), start(&args)];
    let allowed: usize = thread::scope(|scope| {
        let resp = nodes.iter().flat_map(|node| [node, node]).map(|(_, address)| {
            scope.spawn(|| {
                let mut client = RespClient::connect(*address);
                client.send(&encode(&["TOLLGATE.CHECK", "shared"]).repeat(40)).unwrap();
                (0..40).filter(|_| readable(&client.reply().unwrap()).starts_with("[1 ")).count()
            })
        });
        let http = nodes.iter().map(|(service, _)| {
            scope.spawn(|| (0..40).filter(|_| service.check("shared")["allowed"] == true).count())
        });
        let running: Vec<_> = resp.chain(http).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(allowed, 100);
    // CL.THROTTLE decides in Redis, too.
    let [mut one, mut two] =
        [&nodes[0], &nodes[1]].map(|(_, address)| RespClient::connect(*address));
    assert!(one.call("CL.THROTTLE k 9 1 86400 4").starts_with("[0 10 6 -1 "));
    assert!(two.call("CL.THROTTLE k 9 1 86400 4").starts_with("[0 10 2 -1 "));
    assert!(one.call("CL.THROTTLE k 9 1 86400 4").starts_with("[1 10 2 "));
    assert!(one.call("THROTTLE k 10 1 86400 4").starts_with("[1 10 6 "));
}

#[test]
fn store_loss_is_unavailable_or_degraded() {
    let (redis, scratch) = (Server::start(Flavor::Redis), Scratch::new());
    let (url, policy) = (redis.url(), scratch.write("policy.yaml", POLICY));
    let (service, address) = start(&["--redis", &*url, "--policy", &policy]);
    let mut client = RespClient::connect(address);
    assert!(client.call("TOLLGATE.CHECK c path=/strict").starts_with("[1 9 8 "));
    let permit = format!("{:032x}@nx/y{{:c}}", 1);
    drop(redis);
    eventually("the breaker opens", || {
        client.call("TOLLGATE.PEEK any");
        service.get("/api/status").json()["breaker"] == "open"
    });
    for command in ["CHECK", "PEEK"] {
        let reply = client.call(&format!("TOLLGATE.{command} c path=/strict"));
        assert_eq!(
            reply,
            "-UNAVAILABLE the store is unavailable, and rule strict has on_store_loss: deny"
        );
    }
    assert!(client.call("TOLLGATE.CHECK c path=/lenient").starts_with("[1 "));
    assert!(client.call("TOLLGATE.CHECK c").starts_with("[1 100 "), "the share of this node");
    assert!(client.call("CL.THROTTLE k 9 1 86400").starts_with("[0 10 9 -1 "));
    for command in [format!("TOLLGATE.RELEASE {permit}"), format!("TOLLGATE.RENEW {permit}")] {
        let reply = client.call(&command);
        assert!(reply.starts_with("-UNAVAILABLE "), "{command}: {reply}");
        assert!(RETRIED.iter().all(|prefix| !reply.starts_with(prefix)), "{reply}");
    }
    // A pipeline keeps its order when some of its decisions fail.
    let commands = ["path=/strict", "path=/lenient", "path=/strict"];
    client.send(&commands.map(|path| encode(&["TOLLGATE.CHECK", "c", path])).concat()).unwrap();
    let replies = commands.map(|_| readable(&client.reply().unwrap()));
    let starts = replies.each_ref().map(|reply| reply.split(' ').next().unwrap_or_default());
    assert_eq!(starts, ["-UNAVAILABLE", "[1", "-UNAVAILABLE"], "{replies:?}");
}
