//! Redis Cluster: slots that move, and limits in several slots.

use std::collections::BTreeMap;

use serde_json::json;
use tollgate_testkit::server::{Cluster, Flavor, Server, slot_of};
use tollgate_testkit::wait::pause;

use super::common::{assert_exact, assert_never_degraded};
use crate::client::key;
use crate::fleet::Fleet;
use crate::load::Load;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;
use crate::tally::Tally;

/// Starts three primaries and two nodes.
fn start(stage: &Stage, policy: &str) -> (Cluster, Fleet) {
    let cluster = Cluster::of(Flavor::Redis, 3, 0);
    redis::add_user(cluster.nodes());
    let setup = stage.node().redis(&redis::with_login(&cluster.url())).policy(policy);
    (cluster, setup.patient().start_fleet(2))
}

fn client(number: u64, clients: u64) -> String {
    format!("c{}", number % clients)
}

pub(super) fn moving_slots_have_no_visible_effect(stage: &Stage) -> String {
    const LIMIT: usize = 3000;
    const CLIENTS: u64 = 6;
    let (cluster, fleet) = start(stage, &per_client("3000/h", Loss::Local));
    let load = Load::closed(fleet.addresses(), 4).body(|number| key(&client(number, CLIENTS)));
    let rounds = stage.scale().pick(3, 30);
    let redirects = || {
        let of_node =
            |node| redis::error_replies(node, "MOVED") + redis::error_replies(node, "ASK");
        cluster.nodes().iter().map(of_node).sum::<u64>()
    };
    let before = redirects();
    let moving = load.during(|| (0..rounds).for_each(|round| move_all(&cluster, CLIENTS, round)));
    let rest = load.send(CLIENTS * 3200);
    let mut admitted: BTreeMap<String, usize> = BTreeMap::new();
    for tally in [&moving, &rest] {
        assert_unaffected(stage, tally);
        for result in tally.results().iter().filter(|result| result.is_allowed) {
            *admitted.entry(client(result.number, CLIENTS)).or_default() += 1;
        }
    }
    let redirects = redirects() - before;
    assert!(redirects > 0, "no call was redirected");
    let exact = |count: &usize| *count == LIMIT;
    assert!(admitted.values().all(exact), "{LIMIT} per client are admitted: {admitted:?}");
    fleet.iter().for_each(assert_never_degraded);
    format!(
        "{} slots moved during {} answers, {redirects} calls redirected: no error, none degraded, {LIMIT} of {LIMIT} for each of {CLIENTS} \
         clients",
        rounds * CLIENTS,
        moving.count()
    )
}

fn assert_unaffected(stage: &Stage, tally: &Tally) {
    tally.assert_answered(stage);
    assert_eq!(tally.degraded(), 0, "no decision is degraded");
}

/// Moves each client's slot to another primary, key by key.
fn move_all(cluster: &Cluster, clients: u64, round: u64) {
    for number in 0..clients {
        let slot = slot_of(format!("{{:{}}}", client(number, clients)));
        let from = cluster.primary_of_slot(slot).port();
        let others = cluster.nodes().iter().filter(|node| node.port() != from);
        let to = others.collect::<Vec<_>>()[usize::from(round.is_multiple_of(2))];
        let mut migration = cluster.begin_migration(slot, to);
        pause();
        migration.move_keys(1);
        pause();
        migration.finish();
    }
}

const ACROSS: &str = "version: 1
rules:
  - { name: client, per: [client], limits: [1000/h], algorithm: token_bucket, continue: true }
  - { name: user, per: [user], limits: [30/h, 500/d], algorithm: fixed_window, continue: true }
  - { name: all, per: [], limits: [1000/h], algorithm: fixed_window }
";

pub(super) fn limits_across_slots_cause_no_error(stage: &Stage) -> String {
    const LIMIT: usize = 30;
    let (cluster, fleet) = start(stage, ACROSS);
    let users = stage.scale().pick(10, 30);
    let query = |number: u64| {
        let user = format!("u{}", number % users);
        json!({ "facts": { "client": client(number, 7), "user": user } }).to_string()
    };
    let tally = Load::closed(fleet.addresses(), 4).body(query).send(users * 40);
    assert_unaffected(stage, &tally);
    for user in 0..users {
        let of_user = tally.only(|result| result.number % users == user);
        // A plan across slots takes part by part and refunds on refusal, so it may briefly cause another refusal.
        assert!(of_user.admitted() <= LIMIT, "user {user}: {}", of_user.admitted());
    }
    let rest = Load::closed(fleet.addresses(), 1).body(query).send(users * 20);
    assert_unaffected(stage, &rest);
    let admitted = tally.admitted() + rest.admitted();
    let max = LIMIT * usize::try_from(users).expect("a number");
    let has_keys = |node: &Server| !node.raw().call(&["KEYS", "rl:{:*}:*"]).array().is_empty();
    assert!(cluster.nodes().iter().all(has_keys), "the limits are in the slots of one primary");
    assert_eq!(admitted, max.min(1000), "refused requests refund what they took");
    fleet.iter().for_each(assert_never_degraded);
    assert_exact(stage, &fleet.addresses());
    format!(
        "{} answers over three slots each: no error, {admitted} of {max} admitted",
        tally.count()
    )
}
