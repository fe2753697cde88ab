//! Split brain: two halves of a network, each with its own primary.

use std::time::Duration;

use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::server::Server;
use tollgate_testkit::wait::eventually;

use super::common::check_recovery;
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;

const LIMIT: usize = 60;
const BEFORE: u64 = 20;

/// A primary, its replica, and the link between them.
struct Sides {
    primary: Server,
    link: Proxy,
    replica: Server,
}

impl Sides {
    fn start() -> Self {
        let primary = redis::builder().args(["--repl-diskless-sync-delay", "0"]).start();
        let link = Proxy::start(primary.port());
        let replica = redis::start();
        let sides = Self { primary, link, replica };
        sides.follow(&sides.replica, sides.link.port());
        sides
    }

    /// Makes a server a replica of the one at `port`, and waits until it has the data.
    fn follow(&self, server: &Server, port: u16) {
        server.raw().call(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
        eventually("a replica has the data", || {
            let reply = server.raw().call(&["INFO", "replication"]);
            reply.text().contains("master_link_status:up")
        });
    }

    fn split(&self) {
        let mut raw = self.primary.raw();
        raw.call(&["SET", "mark", "1"]);
        eventually("the replica has everything", || raw.call(&["WAIT", "1", "1000"]).int() == 1);
        self.link.set(Fault::Blackhole);
        self.replica.raw().call(&["REPLICAOF", "NO", "ONE"]);
    }
}

fn node(stage: &Stage, server: &Server) -> Node {
    let setup = stage.node().redis(&redis::url(server)).policy(&per_client("60/h", Loss::Deny));
    setup.with("redis-timeout-ms", "1000").start()
}

/// Sends `count` requests. Returns the number admitted.
fn admitted(node: &Node, count: u64) -> usize {
    Load::closed(vec![node.address()], 2).send(count).admitted()
}

pub(super) fn each_side_admits_at_most_one_limit(stage: &Stage) -> String {
    let sides = Sides::start();
    let first = node(stage, &sides.primary);
    let before = admitted(&first, BEFORE);
    sides.split();
    let second = node(stage, &sides.replica);
    let [by_first, by_second] = [&first, &second].map(|node| admitted(node, 100));
    for side in [by_first, by_second] {
        assert!(before + side <= LIMIT, "one side admitted {before} and {side}");
        assert!(side > 0, "one side admitted nothing");
    }
    // The network heals: the old primary becomes a replica of the new one and gets its counters.
    sides.link.set(Fault::Pass);
    sides.follow(&sides.primary, sides.replica.port());
    first.wait_degraded();
    sides.primary.raw().call(&["REPLICAOF", "NO", "ONE"]);
    let back = first.wait_exact();
    assert_eq!(admitted(&first, 10), 0, "the usage of the other side counts");
    format!(
        "{before} before, then {by_first} and {by_second}: each side ≤ {LIMIT}; healed, {}; {}",
        check_recovery(stage, back),
        with_min_replicas(stage)
    )
}

/// The documented setup: a primary without a replica admits nothing.
fn with_min_replicas(stage: &Stage) -> String {
    let documentation = include_str!("../../../docs/REDIS.md");
    assert!(documentation.contains("min-replicas-to-write"), "the remedy is documented");
    let sides = Sides::start();
    let first = node(stage, &sides.primary);
    let mut raw = sides.primary.raw();
    raw.call(&["CONFIG", "SET", "min-replicas-to-write", "1", "min-replicas-max-lag", "1"]);
    eventually("a primary with a replica admits", || first.check("first").is_exact());
    sides.split();
    eventually("a primary without a replica refuses", || first.check("other").status == 503);
    let by_first = admitted(&first, 100);
    assert_eq!(by_first, 0, "the side that lost its replica admits nothing");
    let second = node(stage, &sides.replica);
    sides.replica.raw().call(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    let by_second = admitted(&second, 100);
    assert!(by_second <= LIMIT, "{by_second}");
    let lag = Duration::from_secs(1);
    format!("with min-replicas-to-write 1 and a lag of {lag:?}: {by_first} and {by_second}")
}
