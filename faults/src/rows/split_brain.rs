//! Two halves of a network, each with a primary of its own.

use std::time::Duration;

use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::server::Server;
use tollgate_testkit::wait::eventually;

use super::common::assert_recovered;
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;

const LIMIT: usize = 60;
const BEFORE: u64 = 20;

/// A primary and its replica with a link between them that can be cut.
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

    /// Makes one copy what is behind a port, and waits until it does.
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

fn admitted(node: &Node, questions: u64) -> usize {
    Load::closed(vec![node.address()], 2).send(questions).admitted()
}

pub(super) fn each_side_admits_at_most_one_limit(stage: &Stage) -> String {
    let sides = Sides::start();
    let here = node(stage, &sides.primary);
    let before = admitted(&here, BEFORE);
    sides.split();
    let there = node(stage, &sides.replica);
    let [of_here, of_there] = [&here, &there].map(|node| admitted(node, 100));
    for side in [of_here, of_there] {
        assert!(before + side <= LIMIT, "one side admits {before} and {side}");
    }
    // Together again: what was this side's primary copies the other, which has counted its own.
    sides.link.set(Fault::Pass);
    sides.follow(&sides.primary, sides.replica.port());
    here.wait_degraded();
    sides.primary.raw().call(&["REPLICAOF", "NO", "ONE"]);
    let back = here.wait_exact();
    assert_eq!(admitted(&here, 10), 0, "what the other side has spent is spent");
    format!(
        "{before} together, then {of_here} and {of_there}: each side ≤ {LIMIT}; healed, {}; {}",
        assert_recovered(back),
        heeded(stage)
    )
}

/// What the documentation advises: a primary that no replica follows admits nobody.
fn heeded(stage: &Stage) -> String {
    let advice = include_str!("../../../docs/REDIS.md");
    assert!(advice.contains("min-replicas-to-write"), "the documentation says what to do");
    let sides = Sides::start();
    let here = node(stage, &sides.primary);
    let mut raw = sides.primary.raw();
    raw.call(&["CONFIG", "SET", "min-replicas-to-write", "1", "min-replicas-max-lag", "1"]);
    eventually("it takes while it is followed", || here.check("first").is_exact());
    sides.split();
    eventually("a primary that nobody follows refuses", || here.check("other").status == 503);
    let alone = admitted(&here, 100);
    assert_eq!(alone, 0, "the side that lost its replica admits nobody");
    let there = node(stage, &sides.replica);
    sides.replica.raw().call(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    let other = admitted(&there, 100);
    assert!(other <= LIMIT, "{other}");
    let lag = Duration::from_secs(1);
    format!("with min-replicas-to-write 1 and a lag of {lag:?}: {alone} and {other}")
}
