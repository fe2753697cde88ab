//! A Redis that dies.

use std::time::Duration;

use tollgate_testkit::wait::eventually;

use super::common::{assert_exact, assert_recovered};
use crate::client::on_path;
use crate::fleet::Fleet;
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client, rule_per_loss};
use crate::redis;
use crate::stage::{Scale, Stage};
use crate::tally::Tally;
use crate::waiting::wait_for;

const NODES: usize = 3;
const LIMIT: usize = 90;
const SHARE: usize = LIMIT / NODES;
const WINDOW: Duration = Duration::from_secs(60);
const PATHS: [&str; 3] = ["/local", "/allow", "/deny"];

/// Those who ask one after the other ask different nodes, so each node is asked on each path.
fn path(number: u64) -> &'static str {
    PATHS[usize::try_from(number).expect("a number") / NODES % PATHS.len()]
}

pub(super) fn fleet_keeps_its_limit_without_redis(stage: &Stage) -> String {
    let server = redis::start();
    let setup = stage.node().redis(&redis::url(&server)).policy(&rule_per_loss("90/min"));
    let fleet = setup.start_fleet(NODES);
    fleet.wait_until_counted();
    server.kill();
    let load = Load::open(fleet.addresses(), 150).body(|number| on_path("k", path(number)));
    let tally = load.during(|| wait_for(stage.scale().pick(4, 130) * Duration::from_secs(1)));
    let admitted = assert_policies(&tally);
    assert_marked(&fleet, &tally);
    server.restart();
    let back = fleet.iter().map(Node::wait_exact).sum();
    // By now each of the last minute is there, and no earlier one: a minute admits what the limit says.
    let question = on_path("k", "/local");
    let known = || fleet[0].count(&question);
    let spent = stage.scale().pick(admitted, LIMIT) as u64;
    eventually(&format!("Redis knows of {spent} spent alone"), || known() == Some(spent));
    let (next, has_room) = (fleet[1].post("/check", &question), spent < LIMIT as u64);
    assert_eq!((next.is_exact(), next.is_allowed()), (true, has_room), "{}", next.body);
    format!(
        "{} answers, 5xx only where denied; {admitted} admitted by shares of {SHARE}, {spent} known after; {}",
        tally.count(),
        assert_recovered(back)
    )
}

/// What each policy answers; how many passed by shares.
fn assert_policies(tally: &Tally) -> usize {
    let of = |wanted: &str| tally.only(|heard| path(heard.number) == wanted);
    let [local, allow, deny] = PATHS.map(of);
    [&local, &allow].into_iter().for_each(Tally::assert_answered);
    for of_one in [&local, &allow, &deny] {
        assert_eq!(of_one.degraded(), of_one.count(), "every answer says how it came to be");
    }
    for node in 0..NODES {
        local.assert_rate(node, SHARE, WINDOW);
        let of_node = local.only(|heard| heard.node == node && heard.is_allowed);
        assert!(of_node.count() > 0, "node {node} let nobody pass");
    }
    assert_eq!(allow.admitted(), allow.count(), "everybody passes");
    assert_eq!(deny.admitted(), 0, "nobody passes");
    assert_eq!(deny.failed(), deny.count(), "nobody passes, by 503");
    local.admitted()
}

/// How a single answer looks, and what is counted.
fn assert_marked(fleet: &Fleet, tally: &Tally) {
    let node = &fleet[0];
    let local = node.post("/check", on_path("k", "/local")).json();
    assert_eq!((&local["source"], &local["degraded"]), (&"local".into(), &true.into()));
    let limit = &local["limits"][0];
    assert_eq!((&limit["share"], &limit["limit"]), (&SHARE.into(), &LIMIT.into()), "{local}");
    let deny = node.post("/check", on_path("k", "/deny"));
    assert_eq!((deny.status, deny.is_degraded()), (503, true), "{}", deny.body);
    assert!(deny.header("retry-after").is_some() && deny.json()["allowed"] == false);
    assert_eq!(node.get("/readyz").status, 200);
    assert_eq!(node.status()["breaker"], "open");
    let counted = |by: &str| -> f64 {
        let series = format!("tollgate_degraded_decisions_total{{by=\"{by}\"}}");
        fleet.iter().map(|node| node.metric(&series)).sum()
    };
    let all: f64 = ["local", "allow", "deny"].map(counted).iter().sum();
    let heard = f64::from(u32::try_from(tally.degraded() + 2).expect("a number"));
    assert!((all - heard).abs() < 0.5, "{all} counted, {heard} heard");
    let reply = node.warning();
    assert!(reply.as_deref().is_some_and(|text| text.contains("Redis")), "{reply:?}");
}

pub(super) fn empty_redis_admits_at_most_one_more_limit(stage: &Stage) -> String {
    const LIMIT: usize = 50;
    let server = redis::start();
    let setup = stage.node().redis(&redis::url(&server)).policy(&per_client("50/h", Loss::Local));
    let node = setup.patient().start();
    let load = Load::closed(vec![node.address()], 3);
    let before = load.send(100);
    assert_eq!(before.admitted(), LIMIT);
    let meanwhile = load.during(|| {
        server.kill();
        wait_for(stage.scale().pick(1, 5) * Duration::from_secs(1));
        server.restart();
        node.wait_exact();
    });
    let after = load.send(100);
    [&before, &meanwhile, &after].into_iter().for_each(Tally::assert_answered);
    let extra = meanwhile.admitted() + after.admitted();
    assert!(extra <= LIMIT, "{extra} more than the limit of {LIMIT}");
    assert_exact(&[node.address()]);
    let form = if stage.scale() == Scale::Full { "five seconds" } else { "a second" };
    format!("{LIMIT} before, {extra} after {form} away: one limit more, and exact again")
}
