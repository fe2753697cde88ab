//! A Redis that decides a tenth of the requests that a node receives.

use std::time::Duration;

use tollgate_testkit::proxy::{Fault, Proxy};

use super::common::{SLACK, assert_exact, breaker_openings, check_recovery, check_slowest};
use crate::client::{key, on_path};
use crate::load::Load;
use crate::node::Node;
use crate::policy::rule_per_loss;
use crate::redis;
use crate::stage::Stage;
use crate::table::format_time;
use crate::tally::{RequestResult, Tally};
use crate::waiting::wait_for;

/// The Redis time-out of this row: much more than the delay of a busy machine.
const T: Duration = Duration::from_secs(1);
/// The speed of the throttled Redis, in bytes of calls per second: about two hundred decisions.
const THROTTLE: u32 = 16_000;
/// Connections that measure how many requests the throttled Redis decides.
const CONNECTIONS: usize = 16;
/// The load is this many times what the throttled Redis decides.
const OVERLOAD: u32 = 10;
const LIMIT: usize = 20;
/// One of so many requests is from a client with a small limit.
const LIMITED_EVERY: u64 = 10;
const PATHS: [&str; 3] = ["/local", "/allow", "/deny"];

pub(super) fn overloaded_node_sheds_and_keeps_its_limits(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    let policy = rule_per_loss(&format!("{LIMIT}/h"));
    let setup = stage.node().redis(&redis::through(&proxy)).policy(&policy);
    let node = setup.with("redis-timeout-ms", "1000").start();
    // The scripts are loaded before the connection is slow.
    assert_exact(stage, &[node.address()]);

    proxy.set(Fault::Throttle(THROTTLE));
    let per_second = capacity(&node) * OVERLOAD;
    let seconds = stage.scale().pick(6, 60);
    let load = Load::open(vec![node.address()], per_second).longest(T + SLACK).body(body);
    let overloaded = load.during(|| wait_for(Duration::from_secs(seconds)));
    assert_limits(&overloaded);
    assert_marked(&overloaded);
    check_timed_out(stage, &overloaded);
    assert!(breaker_openings(&node) == 0.0, "an overloaded Redis is not lost: {}", node.log());
    assert!(node.metric("tollgate_shed_total") > 0.0, "shed requests are counted");
    let decided = overloaded.only(|result| result.status == Some(200) && !result.is_degraded);
    let p99 = decided.per_mille(990);
    stage.check_time(p99 <= T + SLACK, || format!("p99 of decided requests: {p99:?}"));

    proxy.set(Fault::Pass);
    node.wait_exact();
    let (hung, back) = hang(stage, &node, || server.hang(), || server.resume());
    format!(
        "T = 1 s; {} requests at {per_second}/s: {} decided, p99 {}, {} shed, {} timed out, breaker closed; hung: {} \
         degraded, none shed; {}",
        overloaded.count(),
        decided.count(),
        format_time(p99),
        overloaded.shed(),
        overloaded.degraded(),
        hung.degraded(),
        check_recovery(stage, back)
    )
}

/// A request of a client with a small limit, under each `on_store_loss` in turn, or of a client with a large one.
fn body(number: u64) -> String {
    if !number.is_multiple_of(LIMITED_EVERY) {
        return key(&format!("c{}", number % 1000));
    }
    let path = usize::try_from(number / LIMITED_EVERY).ok().and_then(|nth| PATHS.get(nth % 3));
    on_path("limited", path.copied().unwrap_or("/"))
}

/// Measures how many requests per second a throttled Redis decides.
fn capacity(node: &Node) -> u32 {
    let (load, seconds) = (Load::closed(vec![node.address()], CONNECTIONS), 2);
    let load = load.body(|number| key(&format!("m{number}")));
    let tally = load.during(|| wait_for(Duration::from_secs(seconds)));
    let decided = tally.only(|result| result.status == Some(200)).count();
    let per_second = u32::try_from(decided).unwrap_or(u32::MAX) / 2;
    per_second.clamp(50, 200)
}

/// Asserts that every request was decided, or shed and marked so. One that timed out after it was sent follows its
/// rule, and is marked as degraded.
fn assert_marked(overloaded: &Tally) {
    let is_right = |one: &RequestResult| one.status == Some(200) || one.is_shed || one.is_degraded;
    let wrong = overloaded.results().iter().find(|one| !is_right(one));
    assert!(wrong.is_none(), "neither decided nor shed: {wrong:?}");
    assert!(overloaded.shed() > 0, "Redis decided {} requests in time", overloaded.count());
}

/// Checks that few requests timed out after they were sent: the node sends what Redis decides in time.
fn check_timed_out(stage: &Stage, overloaded: &Tally) {
    let (degraded, count) = (overloaded.degraded(), overloaded.count());
    stage.check_time(degraded * 50 <= count, || {
        format!("{degraded} of {count} timed out when sent")
    });
}

/// Asserts that no client exceeded its limit.
fn assert_limits(overloaded: &Tally) {
    for nth in 0..PATHS.len() as u64 {
        let of_client = overloaded.only(|result| {
            let number = result.number;
            number.is_multiple_of(LIMITED_EVERY) && number / LIMITED_EVERY % 3 == nth
        });
        let admitted = of_client.admitted();
        assert!(admitted <= LIMIT, "{admitted} of {LIMIT} admitted, path {nth}");
    }
}

/// Sends requests while Redis is hung: each follows the `on_store_loss` of its rule, and none is shed.
fn hang(stage: &Stage, node: &Node, begin: impl FnOnce(), end: impl FnOnce()) -> (Tally, Duration) {
    let load = Load::open(vec![node.address()], 100).longest(T + SLACK).body(|number| {
        let nth = usize::try_from(number).unwrap_or_default() % PATHS.len();
        on_path(&format!("h{number}"), PATHS.get(nth).copied().unwrap_or("/"))
    });
    let tally = load.during(|| {
        begin();
        wait_for(Duration::from_secs(stage.scale().pick(3, 20)));
    });
    end();
    let back = node.wait_exact();
    assert_eq!(tally.shed(), 0, "a hung Redis is lost");
    for result in tally.results() {
        let is_denied = PATHS.get(usize::try_from(result.number).unwrap_or_default() % PATHS.len())
            == Some(&"/deny");
        let expected = if is_denied { 503 } else { 200 };
        assert_eq!(result.status, Some(expected), "{result:?}");
    }
    check_slowest(stage, tally.slowest(), T);
    assert!(tally.degraded() > 0);
    (tally, back)
}
