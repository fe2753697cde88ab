//! Nodes that start while Redis is down.

use std::time::{Duration, Instant};

use tollgate_testkit::wait::eventually;

use super::common::{assert_exact, check_recovery};
use crate::client::key;
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;

const NODES: usize = 3;
const LIMIT: usize = 90;
const SHARE: usize = LIMIT / NODES;
const OVERRIDE: usize = 30;

/// The claim: from the first reply of Redis until it decides on every node, and until all nodes are counted.
const MAX_LATE: Duration = Duration::from_secs(2);

pub(super) fn nodes_start_without_redis_and_become_exact(stage: &Stage) -> String {
    let server = redis::start();
    server.kill();
    let setup = stage.node().redis(&redis::url(&server)).policy(&per_client("90/h", Loss::Local));
    let fleet = setup.with("expected-nodes", "3").start_fleet(NODES);
    for node in fleet.iter() {
        assert_eq!(node.status()["breaker"], "open", "before the first request");
        assert_eq!(node.get("/readyz").status, 200);
        assert_eq!(node.logged(&["WARN", "started without Redis", "nodes=3"]), 1, "{}", node.log());
        let share = Load::closed(vec![node.address()], 2).send(2 * SHARE as u64);
        share.assert_answered(stage);
        assert_eq!((share.admitted(), share.degraded()), (SHARE, 2 * SHARE));
    }
    server.restart();
    let began = Instant::now();
    let back = fleet.iter().map(Node::wait_exact).sum();
    stage.check_time(back < MAX_LATE, || format!("exact only after {back:?}"));
    let up = |node: &Node| node.metric("tollgate_nodes{state=\"up\"}");
    eventually("all nodes are counted", || {
        let listed = fleet[0].get("/api/nodes").json()["nodes"].as_array().map_or(0, Vec::len);
        listed == NODES && fleet.iter().all(|node| up(node) == 3.0)
    });
    let counted = began.elapsed();
    stage.check_time(counted < 2 * MAX_LATE, || format!("all counted only after {counted:?}"));
    eventually("Redis has the debits", || fleet[0].count(&key("k")) == Some(LIMIT as u64));
    assert_exact(stage, &fleet.addresses());
    drop(fleet);
    override_survives(stage);
    format!(
        "three nodes admit {SHARE} of {LIMIT} each, ready and without waiting; all counted after {}; an override \
         survives; {}",
        crate::table::format_time(counted),
        check_recovery(stage, back)
    )
}

/// Asserts that a data directory keeps an override and the number of nodes.
fn override_survives(stage: &Stage) {
    let (server, directory) = (redis::start(), stage.scratch().path().join("late"));
    let setup = stage.node().redis(&redis::url(&server)).policy(&per_client("90/h", Loss::Local));
    let setup = setup.patient().with("data-dir", &directory);
    let node = setup.start();
    node.set_limit("vip", OVERRIDE as u64);
    let saved = || std::fs::read_to_string(directory.join("redis-overrides.json"));
    eventually("the override is saved", || saved().is_ok_and(|text| text.contains("vip")));
    node.kill();
    server.kill();
    let node = setup.start();
    let load = Load::closed(vec![node.address()], 2).body(|_| key("vip"));
    let tally = load.send(2 * OVERRIDE as u64);
    assert_eq!((tally.admitted(), tally.degraded()), (OVERRIDE, 2 * OVERRIDE));
    // The server restarts without its data.
    server.restart();
    node.wait_exact();
    eventually("the override is gone", || node.override_limit("vip").is_none());
}
