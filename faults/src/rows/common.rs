//! Helpers shared by rows.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tollgate_testkit::server::Server;
use tollgate_testkit::wait::MAX_WAIT;

use crate::client::inline;
use crate::load::Load;
use crate::node::Node;
use crate::redis;
use crate::side_load::{self, Tallies};
use crate::stage::Stage;
use crate::tally::Tally;

/// The Redis time-out, unless a row sets another.
pub(super) const T: Duration = Duration::from_millis(100);

/// The slack of times on a machine that runs nothing else: the load and the node share two cores.
pub(super) const SLACK: Duration = Duration::from_millis(500);

/// The maximum recovery time. The product claims two seconds; the load of the row may delay it.
pub(super) const MAX_RECOVERY: Duration = Duration::from_secs(10);

/// The number of attempts when the load of the row disturbs a measurement.
const TRIES: usize = 5;

/// The limit that [`assert_exact`] uses.
const EXACT_LIMIT: usize = 50;

/// Runs `check` on a node with the memory store, and on one with Redis. Both have all front ends.
pub(super) fn on_both_stores(stage: &Stage, policy: &str, mut check: impl FnMut(&Node)) {
    let setup = || stage.node().all_front_ends().policy(policy);
    check(&setup().start());
    let server = redis::start();
    check(&setup().redis(&redis::url(&server)).patient().start());
}

/// Asserts that the store admits exactly a limit for a new client. If a slow machine made a node decide without the
/// store, the attempt proves nothing, and another client is used.
pub(super) fn assert_exact(stage: &Stage, nodes: &[SocketAddr]) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let requests = u64::try_from(EXACT_LIMIT + 10).expect("a number");
    let began = Instant::now();
    for attempt in 1.. {
        let client = format!("fresh-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let body = inline(&client, 1, "fixed_window", EXACT_LIMIT as u64);
        let tally = Load::closed(nodes.to_vec(), 2).body(|_| body.clone()).send(requests);
        if tally.degraded() == 0 {
            tally.assert_answered(stage);
            assert_eq!(tally.admitted(), EXACT_LIMIT, "of {requests} requests for {client}");
            stage.check_time(attempt <= TRIES, || format!("exact at the attempt {attempt}"));
            return;
        }
        let is_late = began.elapsed() > MAX_WAIT;
        assert!(!is_late, "Redis is up, and a node decided without it {attempt} times");
    }
}

/// Checks that recovery was fast enough, and describes it.
pub(super) fn check_recovery(stage: &Stage, took: Duration) -> String {
    stage.check_time(took < MAX_RECOVERY, || format!("exact again only after {took:?}"));
    format!("exact again after {}", crate::table::format_time(took))
}

/// Checks that the slowest response waited for at most one time-out.
pub(super) fn check_slowest(stage: &Stage, slowest: Duration, timeout: Duration) {
    let is_within = slowest < timeout + SLACK;
    stage.check_time(is_within, || format!("the slowest response took {slowest:?}"));
}

/// Asserts that RESP, gRPC and forward auth answered every request without an error, and checks that none waited for longer
/// than one time-out. Describes the number of answers.
pub(super) fn check_others(stage: &Stage, others: &Tallies, timeout: Duration) -> String {
    for (front_end, tally) in others {
        assert!(tally.count() > 0, "no request over {}", front_end.name());
        tally.assert_answered(stage);
        check_slowest(stage, tally.slowest(), timeout);
    }
    format!("also {}", side_load::counts(others))
}

/// Checks that the latency of other clients without (first) and during a fault (second) differs by at most a fifth, plus
/// some slack.
pub(super) fn check_as_fast(
    stage: &Stage,
    tallies: [&Tally; 2],
    per_mille: usize,
    slack: Duration,
) {
    let [alone, loaded] = tallies.map(|tally| tally.per_mille(per_mille));
    let bound = alone.mul_f64(1.2) + slack;
    stage.check_time(loaded <= bound, || {
        format!("{per_mille} of 1000: {loaded:?} during the fault, {alone:?} without")
    });
}

/// Asserts that a node never decided without its store.
pub(super) fn assert_never_degraded(node: &Node) {
    let (errors, state) = (node.errors(), node.metric("tollgate_breaker_state"));
    assert!(errors == 0.0 && state == 0.0, "{errors} errors, breaker {state}\n{}", node.log());
}

/// The number of times a node's breaker opened.
pub(super) fn breaker_openings(node: &Node) -> f64 {
    node.metric("tollgate_breaker_opened_total")
}

/// Closes every client connection of a server.
pub(super) fn disconnect_all(server: &Server) {
    let mut raw = server.raw();
    raw.call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
}
