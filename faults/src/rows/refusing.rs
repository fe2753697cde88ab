//! A Redis that replies with errors: out of memory, evicting, loading, busy.

use std::time::Duration;

use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::server::Server;
use tollgate_testkit::wait::eventually;

use super::common::{
    T, assert_exact, breaker_openings, check_others, check_recovery, check_slowest,
};
use crate::client::on_path;
use crate::front_end::{FrontEnd, Outcome, Query};
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client, per_client_everywhere, rule_per_loss};
use crate::redis;
use crate::side_load::{self, Tallies};
use crate::stage::Stage;
use crate::table::format_time;
use crate::waiting::wait_for;

pub(super) fn redis_without_memory_admits_nothing(stage: &Stage) -> String {
    let server = redis::builder().arg("--maxmemory-policy").arg("noeviction").start();
    let setup = stage.node().all_front_ends().redis(&redis::url(&server));
    let node = setup.policy(&rule_per_loss("50/h")).patient().start();
    let (local, deny) = (on_path("k", "/local"), on_path("k", "/deny"));
    for _ in 0..4 {
        assert!(node.post("/check", &local).is_exact());
    }
    let mut raw = server.raw();
    let keys = raw.call(&["DBSIZE"]).int();
    raw.call(&["CONFIG", "SET", "maxmemory", "1"]);
    let duration = Duration::from_secs(stage.scale().pick(3, 20));
    let load = Load::open(vec![node.address()], 50);
    let load = load.body(|_| local.clone());
    let (tally, others) = side_load::during(
        &node,
        |_| Query::on("side", "/local"),
        || load.during(|| wait_for(duration)),
    );
    tally.assert_answered(stage);
    assert_others_local(&node, &others);
    let by_store = tally.only(|result| result.is_allowed && !result.is_degraded);
    assert_eq!(by_store.count(), 0, "a store without memory admits nothing");
    assert!(tally.degraded() > 0, "Redis decided all requests");
    assert!(tally.admitted() <= 50, "{} admitted by the share of 50", tally.admitted());
    let reply = node.post("/check", &deny);
    assert_eq!((reply.status, reply.is_allowed()), (503, false), "{}", reply.body);
    assert!(raw.call(&["DBSIZE"]).int() <= keys, "Redis has new keys");
    raw.call(&["CONFIG", "SET", "maxmemory", "0"]);
    let back = node.wait_exact();
    let spent = u64::try_from(4 + tally.admitted()).expect("a number").min(50);
    eventually("Redis has the debits of the outage", || node.count(&local) == Some(spent));
    format!(
        "{} answers ({}), none admitted by Redis, {} by the share, nothing written; breaker opened {} times; {}",
        tally.count(),
        check_others(stage, &others, Duration::from_secs(10)),
        tally.admitted(),
        breaker_openings(&node),
        check_recovery(stage, back)
    )
}

/// Asserts that the other front ends admit at most the limit, which is the share of a single node, and refuse requests of
/// rules with `deny` as unavailable.
fn assert_others_local(node: &Node, others: &Tallies) {
    let admitted = |is_grpc: bool| -> usize {
        let wanted =
            others.iter().filter(|(front_end, _)| (*front_end == FrontEnd::Grpc) == is_grpc);
        wanted.map(|(_, tally)| tally.admitted()).sum()
    };
    // gRPC requests have their own rules.
    for admitted in [admitted(false), admitted(true)] {
        assert!((1..=50).contains(&admitted), "{admitted} admitted by the share of 50");
    }
    for front_end in FrontEnd::OTHERS {
        let answer = node.check_over(front_end, &Query::on("k", "/deny"));
        assert_eq!(answer.outcome, Outcome::Unavailable, "{}", front_end.name());
    }
    let (status, shown) = node.auth_of_nginx(&Query::on("k", "/deny"));
    assert_eq!((status, shown.as_deref()), (403, Some("503")), "/auth/nginx");
}

pub(super) fn evicting_redis_causes_a_warning(stage: &Stage) -> String {
    let evicting = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let server = redis::builder().args(evicting).start();
    let setup = stage.node().redis(&redis::url(&server)).with("report-ms", "50");
    let node = setup.patient().start();
    assert!(node.log().contains("noeviction"), "{}", node.log());
    let has_warning = || node.warning().is_some_and(|text| text.contains("(allkeys-lru)"));
    assert!(has_warning(), "{:?}", node.warning());
    assert!(node.check("k").is_exact(), "the node serves");
    server.raw().call(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    eventually("no warning", || node.warning().is_none());
    server.raw().call(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    eventually("a warning again", has_warning);
    let documentation = include_str!("../../../docs/REDIS.md");
    assert!(documentation.contains("noeviction"), "the remedy is documented");
    "a warning at the start, in /api/status and the log; it disappears and returns with the eviction policy".to_owned()
}

pub(super) fn loading_redis_gets_no_extra_load(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    let setup = stage.node().all_front_ends().redis(&redis::through(&proxy));
    let node = setup
        .policy(&per_client_everywhere("1000000/h", Loss::Local))
        .with("redis-timeout-ms", "1000")
        .start();
    assert!(node.check("k").is_exact());
    let (seconds, per_second) = (stage.scale().pick(4, 20), 200);
    proxy.set(Fault::Answer(b"-LOADING Redis is loading the dataset in memory\r\n".to_vec()));
    let connected = proxy.connections();
    let load = Load::open(vec![node.address()], per_second);
    let (tally, others) = side_load::during(
        &node,
        |_| Query::of("side"),
        || load.during(|| wait_for(Duration::from_secs(seconds))),
    );
    let others = check_others(stage, &others, Duration::from_secs(1));
    let (answered, connects) = (proxy.answered(), proxy.connections() - connected);
    proxy.set(Fault::Pass);
    tally.assert_answered(stage);
    assert_eq!(tally.degraded(), tally.count(), "LOADING decides nothing");
    assert!(answered > 0 && answered < tally.count() as u64, "{answered} commands");
    // The requests in flight until the breaker opens, then one probe per second with its connection setup.
    let is_few = answered <= 50 + 10 * seconds;
    stage.check_time(is_few, || format!("{answered} commands in {seconds} s"));
    let is_few = connects <= 5 + 2 * seconds;
    stage.check_time(is_few, || format!("{connects} connections in {seconds} s"));
    let back = check_recovery(stage, node.wait_exact());
    assert_exact(stage, &[node.address()]);
    format!(
        "{} answers ({others}), all degraded; {answered} commands to Redis in {seconds} s over {connects} new connections; {back}",
        tally.count()
    )
}

pub(super) fn busy_redis_keeps_its_script(stage: &Stage) -> String {
    let threshold = stage.scale().pick("1500", "5000");
    let server = redis::builder().args(["--busy-reply-threshold", threshold]).start();
    let policy = per_client("1000000/h", Loss::Local);
    let node = stage.node().redis(&redis::url(&server)).policy(&policy).start();
    node.wait_exact();
    let mut endless = server.raw();
    let load = Load::open(vec![node.address()], 100);
    let tally = load.during(|| {
        endless.send(&["EVAL", "while true do end", "0"]).expect("the connection is open");
        wait_busy(&server);
        wait_for(Duration::from_secs(stage.scale().pick(1, 5)));
        // Only this test kills the script.
        assert!(!server.raw().call(&["SCRIPT", "KILL"]).is_error());
    });
    let back = node.wait_exact();
    tally.assert_answered(stage);
    assert!(tally.degraded() > 0, "a busy Redis decides nothing");
    let slowest = tally.slowest();
    check_slowest(stage, slowest, T);
    let kills = [redis::calls(&server, "script|kill"), redis::calls(&server, "function|kill")];
    assert_eq!(kills, [1, 0], "only this test killed a script");
    assert_exact(stage, &[node.address()]);
    summary(&node, &tally, slowest, &check_recovery(stage, back))
}

fn summary(node: &Node, tally: &crate::tally::Tally, slowest: Duration, back: &str) -> String {
    format!(
        "no reply, then -BUSY: {} answers, {} degraded, slowest {}, breaker opened {} times; no SCRIPT KILL by the \
         node; {}",
        tally.count(),
        tally.degraded(),
        format_time(slowest),
        breaker_openings(node),
        back
    )
}

/// Waits until Redis replies `-BUSY`.
fn wait_busy(server: &Server) {
    eventually("Redis replies -BUSY", || {
        let reply = server.raw().try_call(&["PING"]);
        reply.is_ok_and(|reply| reply.is_error() && reply.error().starts_with("BUSY"))
    });
}
