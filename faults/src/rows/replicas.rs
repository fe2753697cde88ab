//! A primary that becomes a replica, or dies and leaves one that lags.

use std::time::Duration;

use tollgate_testkit::server::{Flavor, Sentinels, Server};
use tollgate_testkit::wait::eventually;

use super::common::{assert_exact, assert_recovered};
use crate::client::key;
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::{Scale, Stage};
use crate::waiting::wait_for;

const PLENTY: &str = "1000000/h";

pub(super) fn node_is_degraded_until_the_replica_is_primary(stage: &Stage) -> String {
    let server = redis::start();
    let setup = stage.node().redis(&redis::url(&server)).policy(&per_client(PLENTY, Loss::Local));
    let node = setup.with("redis-timeout-ms", "1000").start();
    let mut back = Duration::ZERO;
    let tally = Load::open(vec![node.address()], 100).during(|| {
        // Of a primary that is not there: what it holds stays.
        server.raw().call(&["REPLICAOF", "127.0.0.1", "1"]);
        node.wait_degraded();
        wait_for(Duration::from_secs(stage.scale().pick(2, 10)));
        server.raw().call(&["REPLICAOF", "NO", "ONE"]);
        back = node.wait_exact();
    });
    tally.assert_answered();
    assert_exact(&[node.address()]);
    let alone = format!("{} answers, no 5xx, {}", tally.count(), assert_recovered(back));
    match stage.scale() {
        Scale::Quick => alone,
        Scale::Full => format!("{alone}; failover by sentinels: {}", led(stage)),
    }
}

/// The same with sentinels, who tell where the primary went.
fn led(stage: &Stage) -> String {
    let (all, node) = led_by_sentinels(stage, &per_client(PLENTY, Loss::Local));
    let mut back = Duration::ZERO;
    let tally = Load::open(vec![node.address()], 100).during(|| {
        let _ = all.failover();
        back = node.wait_exact();
    });
    tally.assert_answered();
    assert_exact(&[node.address()]);
    format!("{} answers, no 5xx, {} of the promotion", tally.count(), assert_recovered(back))
}

fn led_by_sentinels(stage: &Stage, policy: &str) -> (Sentinels, Node) {
    let all = Sentinels::start(Flavor::Redis);
    redis::add_user(all.nodes());
    let setup = stage.node().redis(&redis::with_login(&all.url())).policy(policy);
    let node = setup.with("redis-timeout-ms", "1000").start();
    node.wait_exact();
    (all, node)
}

/// Waits until the replicas have all that the primary has.
fn sync(primary: &Server) {
    let mut raw = primary.raw();
    raw.call(&["SET", "mark", "1"]);
    eventually("replicas have everything", || raw.call(&["WAIT", "2", "1000"]).int() == 2);
}

/// What a node admits of so many questions, all of which the store answers.
fn admitted(node: &Node, questions: u64) -> usize {
    let tally = Load::closed(vec![node.address()], 1).send(questions);
    tally.assert_answered();
    tally.admitted()
}

pub(super) fn lagging_replica_loses_what_it_did_not_receive(stage: &Stage) -> String {
    const LIMIT: usize = 400;
    const LAG: u64 = 100;
    // Nobody passes without the store, so that all who pass are its own.
    let (all, node) = led_by_sentinels(stage, &per_client("400/h", Loss::Deny));
    let before = admitted(&node, 200);
    let primary = all.primary();
    sync(primary);
    let replicas = all.replicas();
    replicas.iter().for_each(|replica| replica.hang());
    primary.raw().call(&["CLIENT", "KILL", "TYPE", "replica"]);
    let unheard = admitted(&node, LAG);
    let old = all.kill_primary();
    replicas.iter().for_each(|replica| replica.resume());
    let meanwhile = Load::closed(vec![node.address()], 1).during(|| {
        let _ = all.wait_for_new_primary(old);
        // By looking only: whoever passes is counted.
        let mut client = node.client();
        eventually("the limit is used up at the new primary", || {
            let reply = client.post("/peek", key("k"));
            reply.is_ok_and(|reply| reply.is_exact() && reply.json()["remaining"] == 0)
        });
    });
    let all_admitted = before + unheard + meanwhile.admitted();
    assert!(all_admitted <= LIMIT + unheard, "{all_admitted} with {unheard} in the lag");
    assert_exact(&[node.address()]);
    format!(
        "{before} heard, {unheard} in the lag, {} after: {all_admitted} ≤ {LIMIT} + {unheard}; {} denied \
         meanwhile; exact again",
        meanwhile.admitted(),
        meanwhile.failed()
    )
}
