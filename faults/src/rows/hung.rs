//! A Redis that is there and says nothing.

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

/// What many clients need for as long as this lasts.
const PLENTY: &str = "1000000/h";
const CLIENTS: u64 = 100;
/// An answer that takes longer has waited for the store.
const SLOW: Duration = Duration::from_millis(50);
/// When the breaker is open for certain.
const SETTLED: Duration = Duration::from_secs(2);

/// What an outage is and how long it lasts.
struct Outage<'a> {
    per_second: u32,
    seconds: u64,
    begin: &'a dyn Fn(),
    end: &'a dyn Fn(),
}

pub(super) fn hung_redis_delays_for_one_timeout(stage: &Stage) -> String {
    let server = redis::start();
    let node =
        stage.node().redis(&redis::url(&server)).policy(&per_client(PLENTY, Loss::Local)).start();
    let seconds = stage.scale().pick(5, 60);
    let (begin, end) = (&|| server.hang(), &|| server.resume());
    endure(&node, &Outage { per_second: 1000, seconds, begin, end })
}

pub(super) fn black_hole_delays_for_one_timeout(stage: &Stage) -> String {
    let seconds = stage.scale().pick(3, 30);
    let server = redis::builder().arg("--tcp-backlog").arg("1").start();
    let proxy = Proxy::start(server.port());
    let policy = per_client(PLENTY, Loss::Local);
    let node = stage.node().redis(&redis::through(&proxy)).policy(&policy).start();
    let (begin, end) = (&|| proxy.set(Fault::Blackhole), &|| proxy.set(Fault::Pass));
    let swallowed = endure(&node, &Outage { per_second: 500, seconds, begin, end });
    drop(node);

    // As a link that is down: nobody answers a connect either.
    let node = stage.node().redis(&redis::url(&server)).policy(&policy).start();
    let crowd = std::cell::RefCell::new(Vec::new());
    let begin = &|| {
        server.hang();
        crowd.replace(crowded(&server));
    };
    let end = &|| {
        crowd.take();
        server.resume();
    };
    let refused = endure(&node, &Outage { per_second: 500, seconds, begin, end });
    format!("swallowed: {swallowed}; connects too: {refused}")
}

/// Connections until one more is not answered.
fn crowded(server: &Server) -> Vec<TcpStream> {
    let address = (Ipv4Addr::LOCALHOST, server.port()).into();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
    let crowd: Vec<TcpStream> = std::iter::from_fn(connect).take(1000).collect();
    assert!(crowd.len() < 1000, "a hung server takes any number of connections");
    crowd
}

/// Asks all the time: before, during and after.
fn endure(node: &Node, outage: &Outage<'_>) -> String {
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
    let calm = during.between(begun + SETTLED, ended);
    assert_felt_briefly(&during, &calm, outage);
    assert_asked_little(node, &during);
    format!(
        "{} answers, {} slow, slowest {}, p99 {} then {}; {}",
        during.count(),
        during.slower_than(SLOW),
        format_time(during.slowest()),
        format_time(tally.between(begun - Duration::from_secs(1), begun).per_mille(990)),
        format_time(calm.per_mille(990)),
        assert_recovered(back)
    )
}

/// Only those wait who ask before the breaker knows, and no longer than for one time-out.
fn assert_felt_briefly(during: &Tally, calm: &Tally, outage: &Outage<'_>) {
    let slowest = during.slowest();
    assert!(slowest < T + SLACK, "the slowest answer took {slowest:?}");
    // Those under way until the first time-out, twice over, and some for a machine that is busy.
    let under_way = usize::try_from(outage.per_second / 10).expect("a number");
    let (slow, bound) = (during.slower_than(SLOW), 2 * under_way + during.count() / 100);
    assert!(slow <= bound, "{slow} of {} answers were slow", during.count());
    assert!(calm.degraded() * 100 >= calm.count() * 99, "the breaker is open");
    let usual = calm.per_mille(990);
    assert!(usual < SLOW, "while the breaker is open 99 of 100 are answered within {usual:?}");
}

/// What the breaker answers is no question to the store.
fn assert_asked_little(node: &Node, during: &Tally) {
    let (errors, asked) = (node.errors(), during.count());
    let asked = f64::from(u32::try_from(asked).expect("a number"));
    assert!(errors > 0.0 && errors < asked / 2.0, "{errors} errors, {asked} questions");
}
