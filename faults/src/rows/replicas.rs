//! A primary that becomes a replica, or dies and leaves a replica that lags.

use std::time::Duration;

use tollgate_testkit::server::{Flavor, Sentinels, Server};
use tollgate_testkit::wait::eventually;

use super::common::{assert_exact, check_recovery};
use crate::client::key;
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::scale::Scale;
use crate::stage::Stage;
use crate::waiting::wait_for;

/// A limit that the row does not reach.
const LARGE_LIMIT: &str = "1000000/h";

pub(super) fn node_is_degraded_until_the_replica_is_primary(stage: &Stage) -> String {
    let server = redis::start();
    let setup =
        stage.node().redis(&redis::url(&server)).policy(&per_client(LARGE_LIMIT, Loss::Local));
    let node = setup.with("redis-timeout-ms", "1000").start();
    let mut back = Duration::ZERO;
    let tally = Load::open(vec![node.address()], 100).during(|| {
        // The new primary does not exist, so the data stays.
        server.raw().call(&["REPLICAOF", "127.0.0.1", "1"]);
        node.wait_degraded();
        wait_for(Duration::from_secs(stage.scale().pick(2, 10)));
        server.raw().call(&["REPLICAOF", "NO", "ONE"]);
        back = node.wait_exact();
    });
    tally.assert_answered(stage);
    assert_exact(stage, &[node.address()]);
    let single = format!("{} answers, no 5xx, {}", tally.count(), check_recovery(stage, back));
    match stage.scale() {
        Scale::Quick => single,
        Scale::Full => format!("{single}; failover by sentinels: {}", failover(stage)),
    }
}

/// The same with sentinels, which report the new primary.
fn failover(stage: &Stage) -> String {
    let (sentinels, node) = start_sentinels(stage, &per_client(LARGE_LIMIT, Loss::Local));
    let mut back = Duration::ZERO;
    let tally = Load::open(vec![node.address()], 100).during(|| {
        let _ = sentinels.failover();
        back = node.wait_exact();
    });
    tally.assert_answered(stage);
    assert_exact(stage, &[node.address()]);
    format!("{} answers, no 5xx, {} the promotion", tally.count(), check_recovery(stage, back))
}

/// Starts sentinels, a primary with two replicas, and a node.
fn start_sentinels(stage: &Stage, policy: &str) -> (Sentinels, Node) {
    let sentinels = Sentinels::start(Flavor::Redis);
    redis::add_user(sentinels.nodes());
    let setup = stage.node().redis(&redis::with_login(&sentinels.url())).policy(policy);
    let node = setup.with("redis-timeout-ms", "1000").start();
    node.wait_exact();
    (sentinels, node)
}

/// Waits until the replicas have all data of the primary.
fn sync(primary: &Server) {
    let mut raw = primary.raw();
    raw.call(&["SET", "mark", "1"]);
    eventually("replicas have everything", || raw.call(&["WAIT", "2", "1000"]).int() == 2);
}

/// Sends `count` requests. Returns the number admitted.
fn admitted(node: &Node, count: u64) -> usize {
    let tally = Load::closed(vec![node.address()], 1).send(count);
    tally.assert_none_failed();
    tally.admitted()
}

pub(super) fn lagging_replica_loses_what_it_did_not_receive(stage: &Stage) -> String {
    const LIMIT: usize = 400;
    const LAG: u64 = 100;
    // With `deny`, the store decides every admission.
    let (sentinels, node) = start_sentinels(stage, &per_client("400/h", Loss::Deny));
    let before = admitted(&node, 200);
    let primary = sentinels.primary();
    sync(primary);
    let replicas = sentinels.replicas();
    replicas.iter().for_each(|replica| replica.hang());
    primary.raw().call(&["CLIENT", "KILL", "TYPE", "replica"]);
    let lost = admitted(&node, LAG);
    let old = sentinels.kill_primary();
    replicas.iter().for_each(|replica| replica.resume());
    let during = Load::closed(vec![node.address()], 1).during(|| {
        let _ = sentinels.wait_for_new_primary(old);
        // Peeks only, because every admission is counted.
        let mut client = node.client();
        eventually("the limit is exhausted at the new primary", || {
            let reply = client.post("/peek", key("k"));
            reply.is_ok_and(|reply| reply.is_exact() && reply.json()["remaining"] == 0)
        });
    });
    let total = before + lost + during.admitted();
    assert!(total <= LIMIT + lost, "{total} admitted, {lost} in the lag");
    assert!(total > LIMIT, "the new primary has all that the old one had: {total} admitted");
    assert_exact(stage, &[node.address()]);
    format!(
        "{before} replicated, {lost} in the lag, {} after: {total} ≤ {LIMIT} + {lost}; {} denied during the \
         failover; exact again",
        during.admitted(),
        during.failed()
    )
}
