//! A Redis that accepts connections and sends no replies.

use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::server::Server;

use super::common::{SLACK, T, assert_exact, assert_recovered};
use crate::client::key;
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
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
        .redis(&redis::url(&server))
        .policy(&per_client(LARGE_LIMIT, Loss::Local))
        .start();
    let seconds = stage.scale().pick(5, 60);
    let (begin, end) = (&|| server.hang(), &|| server.resume());
    run_outage(&node, &Outage { per_second: 1000, seconds, begin, end })
}

pub(super) fn black_hole_delays_for_one_timeout(stage: &Stage) -> String {
    let seconds = stage.scale().pick(3, 30);
    let server = redis::builder().arg("--tcp-backlog").arg("1").start();
    let proxy = Proxy::start(server.port());
    let policy = per_client(LARGE_LIMIT, Loss::Local);
    let node = stage.node().redis(&redis::through(&proxy)).policy(&policy).start();
    let (begin, end) = (&|| proxy.set(Fault::Blackhole), &|| proxy.set(Fault::Pass));
    let without_replies = run_outage(&node, &Outage { per_second: 500, seconds, begin, end });
    drop(node);

    // Like a link that is down: connects time out too.
    let node = stage.node().redis(&redis::url(&server)).policy(&policy).start();
    let held = std::cell::RefCell::new(Vec::new());
    let begin = &|| {
        server.hang();
        held.replace(fill_backlog(&server));
    };
    let end = &|| {
        held.take();
        server.resume();
    };
    let without_connects = run_outage(&node, &Outage { per_second: 500, seconds, begin, end });
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
fn run_outage(node: &Node, outage: &Outage<'_>) -> String {
    let load = Load::open(vec![node.address()], outage.per_second)
        .body(|number| key(&format!("c{}", number % CLIENTS)));
    let (mut begun, mut ended, mut back) = (Instant::now(), Instant::now(), Duration::ZERO);
    let tally = load.during(|| {
        wait_for(Duration::from_secs(2));
        begun = Instant::now();
        (outage.begin)();
        wait_for(Duration::from_secs(outage.seconds));
        (outage.end)();
        ended = Instant::now();
        back = node.wait_exact();
    });
    tally.assert_answered();
    assert_exact(&[node.address()]);
    let during = tally.between(begun, ended);
    let open = during.between(begun + BREAKER_OPEN_AFTER, ended);
    assert_brief_delay(&during, &open, outage);
    assert_few_store_calls(node, &during);
    format!(
        "{} answers, {} slow, slowest {}, p99 {} then {}; {}",
        during.count(),
        during.slower_than(SLOW),
        format_time(during.slowest()),
        format_time(tally.between(begun - Duration::from_secs(1), begun).per_mille(990)),
        format_time(open.per_mille(990)),
        assert_recovered(back)
    )
}

/// Asserts that requests wait only until the breaker opens, and for at most one time-out.
fn assert_brief_delay(during: &Tally, open: &Tally, outage: &Outage<'_>) {
    let slowest = during.slowest();
    assert!(slowest < T + SLACK, "the slowest response took {slowest:?}");
    // Twice the requests in flight until the first time-out, and some for a busy machine.
    let in_flight = usize::try_from(outage.per_second / 10).expect("a number");
    let (slow, bound) = (during.slower_than(SLOW), 2 * in_flight + during.count() / 100);
    assert!(slow <= bound, "{slow} of {} responses were slow", during.count());
    assert!(open.degraded() * 100 >= open.count() * 99, "the breaker is open");
    let p99 = open.per_mille(990);
    assert!(p99 < SLOW, "p99 while the breaker is open: {p99:?}");
}

/// Asserts that an open breaker keeps requests away from the store.
fn assert_few_store_calls(node: &Node, during: &Tally) {
    let errors = node.errors();
    let requests = f64::from(u32::try_from(during.count()).expect("a number"));
    assert!(errors > 0.0 && errors < requests / 2.0, "{errors} errors, {requests} requests");
}
