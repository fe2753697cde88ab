//! A Redis that accepts connections and sends no replies.

use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::server::Server;

use super::common::{T, assert_exact, check_others, check_recovery, check_slowest};
use crate::client::key;
use crate::front_end::{FrontEnd, Query};
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client_everywhere};
use crate::redis;
use crate::side_load::{self, Tallies};
use crate::stage::Stage;
use crate::table::format_time;
use crate::tally::Tally;
use crate::waiting::wait_for;

/// A limit that the row does not reach.
const LARGE_LIMIT: &str = "1000000/h";
const CLIENTS: u64 = 100;
/// A response that takes longer has waited for the store.
const SLOW: Duration = Duration::from_millis(50);
/// The time after which the breaker is certainly open.
const BREAKER_OPEN_AFTER: Duration = Duration::from_secs(2);

/// How an outage begins and ends, how long it lasts, and the load.
struct Outage<'a> {
    per_second: u32,
    seconds: u64,
    begin: &'a dyn Fn(),
    end: &'a dyn Fn(),
}

pub(super) fn hung_redis_delays_for_one_timeout(stage: &Stage) -> String {
    let server = redis::start();
    let node = stage
        .node()
        .all_front_ends()
        .redis(&redis::url(&server))
        .policy(&per_client_everywhere(LARGE_LIMIT, Loss::Local))
        .start();
    let seconds = stage.scale().pick(5, 60);
    let (begin, end) = (&|| server.hang(), &|| server.resume());
    run_outage(stage, &node, &Outage { per_second: 1000, seconds, begin, end })
}

pub(super) fn black_hole_delays_for_one_timeout(stage: &Stage) -> String {
    let seconds = stage.scale().pick(3, 30);
    let server = redis::builder().arg("--tcp-backlog").arg("1").start();
    let proxy = Proxy::start(server.port());
    let policy = per_client_everywhere(LARGE_LIMIT, Loss::Local);
    let node = stage.node().all_front_ends().redis(&redis::through(&proxy)).policy(&policy).start();
    let (begin, end) = (&|| proxy.set(Fault::Blackhole), &|| proxy.set(Fault::Pass));
    let without_replies =
        run_outage(stage, &node, &Outage { per_second: 500, seconds, begin, end });
    drop(node);

    // Like a link that is down: connects time out too.
    let setup = stage.node().all_front_ends().redis(&redis::url(&server));
    let node = setup.policy(&policy).start();
    let held = std::cell::RefCell::new(Vec::new());
    let begin = &|| {
        server.hang();
        held.replace(fill_backlog(&server));
    };
    let end = &|| {
        held.take();
        server.resume();
    };
    let without_connects =
        run_outage(stage, &node, &Outage { per_second: 500, seconds, begin, end });
    format!("no replies: {without_replies}; no connects either: {without_connects}")
}

/// Opens connections until the backlog of a hung server is full.
fn fill_backlog(server: &Server) -> Vec<TcpStream> {
    let address = (Ipv4Addr::LOCALHOST, server.port()).into();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
    let held: Vec<TcpStream> = std::iter::from_fn(connect).take(1000).collect();
    assert!(held.len() < 1000, "the backlog of a hung server is not limited");
    held
}

/// Sends requests before, during and after an outage.
fn run_outage(stage: &Stage, node: &Node, outage: &Outage<'_>) -> String {
    let load = Load::open(vec![node.address()], outage.per_second)
        .body(|number| key(&format!("c{}", number % CLIENTS)));
    let (mut begun, mut ended, mut back) = (Instant::now(), Instant::now(), Duration::ZERO);
    let query = |number| Query::of(format!("c{}", number % CLIENTS));
    let (tally, others) = side_load::during(node, query, || {
        load.during(|| {
            wait_for(Duration::from_secs(2));
            begun = Instant::now();
            (outage.begin)();
            wait_for(Duration::from_secs(outage.seconds));
            ended = Instant::now();
            (outage.end)();
            back = node.wait_exact();
        })
    });
    tally.assert_answered(stage);
    assert_others_degraded(node, &tally, &others, (begun + BREAKER_OPEN_AFTER, ended));
    assert_exact(stage, &[node.address()]);
    let during = tally.between(begun, ended);
    let open = during.between(begun + BREAKER_OPEN_AFTER, ended);
    assert_degraded(&tally.within(begun + BREAKER_OPEN_AFTER, ended));
    check_delays(stage, &during, &open, outage);
    assert_few_store_calls(stage, node, &tally, &during);
    format!(
        "{} answers ({}), {} slow, slowest {}, p99 {} then {}; {}",
        during.count(),
        check_others(stage, &others, T),
        during.slower_than(SLOW),
        format_time(during.slowest()),
        format_time(tally.between(begun - Duration::from_secs(1), begun).per_mille(990)),
        format_time(open.per_mille(990)),
        check_recovery(stage, back)
    )
}

/// Asserts that the node decided the requests of all front ends itself while Redis was lost. Only responses over HTTP report
/// it, but the metric counts all.
fn assert_others_degraded(
    node: &Node,
    tally: &Tally,
    others: &Tallies,
    (begin, end): (Instant, Instant),
) {
    let in_outage = |(_, tally): &(FrontEnd, Tally)| tally.within(begin, end).count();
    let expected = tally.degraded() + others.iter().map(in_outage).sum::<usize>();
    let counted = node.metric("tollgate_degraded_decisions_total{by=\"local\"}");
    let expected = f64::from(u32::try_from(expected).expect("a number"));
    assert!(counted >= expected, "{counted} degraded decisions counted, at least {expected} made");
}

/// Asserts that every response that was sent during the outage is degraded.
fn assert_degraded(open: &Tally) {
    assert!(open.count() > 0, "no request was answered during the outage");
    assert_eq!(open.degraded(), open.count(), "the store sends no replies");
}

/// Checks that requests wait only until the breaker opens, and for at most one time-out.
fn check_delays(stage: &Stage, during: &Tally, open: &Tally, outage: &Outage<'_>) {
    check_slowest(stage, during.slowest(), T);
    // Twice the requests in flight until the first time-out, and some for the load of the row.
    let in_flight = usize::try_from(outage.per_second / 10).expect("a number");
    let (slow, bound) = (during.slower_than(SLOW), 2 * in_flight + during.count() / 100);
    let count = during.count();
    stage.check_time(slow <= bound, || format!("{slow} of {count} responses were slow"));
    let p99 = open.per_mille(990);
    stage.check_time(p99 < SLOW, || format!("p99 while the breaker is open: {p99:?}"));
}

/// Asserts that an open breaker keeps requests away from the store. How many are in flight when it opens depends on the
/// speed of the machine.
fn assert_few_store_calls(stage: &Stage, node: &Node, tally: &Tally, during: &Tally) {
    let errors = node.errors();
    let [all, requests] =
        [tally, during].map(|tally| f64::from(u32::try_from(tally.count()).expect("a number")));
    assert!(errors > 0.0 && errors < all, "{errors} errors, {all} requests");
    let is_small = errors < requests / 2.0;
    stage.check_time(is_small, || format!("{errors} errors, {requests} requests in the outage"));
}
