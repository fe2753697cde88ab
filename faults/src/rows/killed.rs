//! A Redis that is killed, also with little traffic, and one that restarts empty.

use std::time::Duration;

use tollgate_testkit::wait::eventually;

use super::common::{assert_exact, check_recovery};
use crate::client::{key, on_path};
use crate::fleet::Fleet;
use crate::front_end::{FrontEnd, Query};
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client, rule_per_loss};
use crate::redis;
use crate::scale::Scale;
use crate::side_load::{self, Tallies};
use crate::stage::Stage;
use crate::tally::Tally;
use crate::waiting::wait_for;

const NODES: usize = 3;
const LIMIT: usize = 90;
const SHARE: usize = LIMIT / NODES;
const WINDOW: Duration = Duration::from_secs(60);
const PATHS: [&str; 3] = ["/local", "/allow", "/deny"];

/// The path of a request. Consecutive requests go to different nodes, so each node gets requests on each path.
fn path(number: u64) -> &'static str {
    PATHS[usize::try_from(number).expect("a number") / NODES % PATHS.len()]
}

pub(super) fn fleet_keeps_its_limit_without_redis(stage: &Stage) -> String {
    let server = redis::start();
    let setup = stage.node().all_front_ends().redis(&redis::url(&server));
    let setup = setup.policy(&rule_per_loss("90/min"));
    let fleet = setup.start_fleet(NODES);
    fleet.wait_until_counted();
    server.kill();
    let load = Load::open(fleet.addresses(), 150).body(|number| on_path("k", path(number)));
    let query = |number: u64| {
        let path = PATHS[usize::try_from(number).expect("a number") % PATHS.len()];
        Query::on("side", path)
    };
    let (tally, others) = side_load::during(&fleet[0], query, || {
        load.during(|| wait_for(stage.scale().pick(4, 130) * Duration::from_secs(1)))
    });
    let admitted = assert_policies(&tally);
    assert_policies_of_others(&others);
    assert_reported(&fleet, &tally, &others);
    server.restart();
    let back = fleet.iter().map(Node::wait_exact).sum();
    // Redis has the debits of the last minute only, and a minute admits at most the limit.
    let query = on_path("k", "/local");
    let usage = || fleet[0].count(&query);
    let spent = stage.scale().pick(admitted, LIMIT) as u64;
    eventually(&format!("Redis has {spent} debits of the outage"), || usage() == Some(spent));
    let (next, has_room) = (fleet[1].post("/check", &query), spent < LIMIT as u64);
    assert_eq!((next.is_exact(), next.is_allowed()), (true, has_room), "{}", next.body);
    let few = assert_few_are_debited(stage);
    format!(
        "{} answers (also {}), 5xx only with `deny`; {admitted} admitted by shares of {SHARE}, {spent} debited afterwards, \
         and {few} of {few} with too few failures to open the breaker; {}",
        tally.count(),
        side_load::counts(&others),
        check_recovery(stage, back)
    )
}

/// Asserts that admissions are debited if the breaker never opened. Returns their number.
fn assert_few_are_debited(stage: &Stage) -> u64 {
    const ADMITTED: u64 = 4;
    let server = redis::start();
    let setup = stage.node().redis(&redis::url(&server)).policy(&per_client("50/h", Loss::Local));
    let setup = setup.with("breaker-failures", "1000000").with("probe-ms", "20");
    let node = setup.start();
    node.wait_exact();
    server.kill();
    for _ in 0..ADMITTED {
        let reply = node.check("k");
        assert!(reply.is_degraded() && reply.is_allowed(), "{}", reply.body);
        // More failures than requests: the node has probed Redis since.
        let errors = node.errors();
        eventually("a probe failed", || node.errors() > errors + 1.5);
    }
    assert_eq!(node.status()["breaker"], "closed");
    server.restart();
    let usage = || node.count(&key("k"));
    eventually("Redis has the debits of an outage with little traffic", || {
        usage() == Some(ADMITTED)
    });
    ADMITTED
}

/// Asserts the behaviour of each `on_store_loss`. Returns the number admitted by shares.
fn assert_policies(tally: &Tally) -> usize {
    let on = |wanted: &str| tally.only(|result| path(result.number) == wanted);
    let [local, allow, deny] = PATHS.map(on);
    [&local, &allow].into_iter().for_each(Tally::assert_none_failed);
    for on_path in [&local, &allow, &deny] {
        assert_eq!(on_path.degraded(), on_path.count(), "every response is marked as degraded");
    }
    for node in 0..NODES {
        local.assert_rate(node, SHARE, WINDOW);
        let of_node = local.only(|result| result.node == node && result.is_allowed);
        assert!(of_node.count() > 0, "node {node} admitted nothing");
    }
    assert_eq!(allow.admitted(), allow.count(), "all requests are allowed");
    assert_eq!(deny.admitted(), 0, "no request is allowed");
    assert_eq!(deny.failed(), deny.count(), "every response is 503");
    local.admitted()
}

/// Asserts the behaviour of each `on_store_loss` over RESP, gRPC and forward auth, on one node. RESP and forward auth share
/// counters; gRPC requests have their own rules.
fn assert_policies_of_others(others: &Tallies) {
    let results = |front_ends: &[FrontEnd], path: usize| {
        let wanted = others.iter().filter(|(front_end, _)| front_ends.contains(front_end));
        let all = wanted.flat_map(|(_, tally)| tally.results()).copied();
        Tally::new(all.filter(|one| one.number % PATHS.len() as u64 == path as u64).collect())
    };
    for front_ends in [&[FrontEnd::Resp, FrontEnd::Auth][..], &[FrontEnd::Grpc]] {
        let [local, allow, deny] = [0, 1, 2].map(|path| results(front_ends, path));
        [&local, &allow].into_iter().for_each(Tally::assert_none_failed);
        local.assert_rate(0, SHARE, WINDOW);
        assert!(local.admitted() > 0, "{front_ends:?} admitted nothing");
        assert_eq!(allow.admitted(), allow.count(), "{front_ends:?}: all requests are allowed");
        // Every response is the error of a lost store.
        assert_eq!((deny.admitted(), deny.failed()), (0, deny.count()), "{front_ends:?}");
        assert_eq!(deny.shed(), 0, "{front_ends:?}");
    }
}

/// Asserts the fields of one degraded response, and the metrics.
fn assert_reported(fleet: &Fleet, tally: &Tally, others: &Tallies) {
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
    let of_others: usize = others.iter().map(|(_, tally)| tally.count()).sum();
    let received = tally.degraded() + of_others + 2;
    let received = f64::from(u32::try_from(received).expect("a number"));
    assert!((all - received).abs() < 0.5, "{all} counted, {received} received");
    let warning = node.warning();
    assert!(warning.as_deref().is_some_and(|text| text.contains("Redis")), "{warning:?}");
}

pub(super) fn empty_redis_admits_at_most_one_more_limit(stage: &Stage) -> String {
    const LIMIT: usize = 50;
    let server = redis::start();
    let setup = stage.node().redis(&redis::url(&server)).policy(&per_client("50/h", Loss::Local));
    let node = setup.patient().start();
    let load = Load::closed(vec![node.address()], 3);
    let before = load.send(100);
    assert_eq!(before.admitted(), LIMIT);
    let during = load.during(|| {
        server.kill();
        wait_for(stage.scale().pick(1, 5) * Duration::from_secs(1));
        server.restart();
        node.wait_exact();
    });
    let after = load.send(100);
    [&before, &during, &after].into_iter().for_each(|tally| tally.assert_answered(stage));
    assert!(during.degraded() > 0, "every decision during the outage was made by Redis");
    let extra = during.admitted() + after.admitted();
    assert!(extra > 0, "Redis restarted with its data");
    assert!(extra <= LIMIT, "{extra} admitted after the restart, with a limit of {LIMIT}");
    assert_exact(stage, &[node.address()]);
    let outage = if stage.scale() == Scale::Full { "five seconds" } else { "one second" };
    format!(
        "{LIMIT} before, {extra} after an outage of {outage}: at most one more limit, and exact again"
    )
}
