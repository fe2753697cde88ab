//! A Redis that answers late.

use std::time::Duration;

use tollgate_testkit::proxy::{Fault, Proxy};

use super::common::{
    SLACK, assert_exact, assert_never_degraded, assert_recovered, breaker_openings,
};
use crate::client::key;
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;
use crate::table::format_time;
use crate::waiting::wait_for;

/// The time-out of this row: half of it is much more than a busy machine adds.
const T: Duration = Duration::from_secs(1);
const LIMIT: usize = 40;

pub(super) fn half_a_timeout_is_exact_and_two_are_degraded(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    let setup =
        stage.node().redis(&redis::through(&proxy)).policy(&per_client("40/h", Loss::Local));
    let fleet = setup.with("redis-timeout-ms", "1000").start_fleet(2);
    proxy.set(Fault::Delay(T / 2));
    let late = Load::closed(fleet.addresses(), 2).send(stage.scale().pick(60, 600));
    late.assert_answered();
    assert_eq!((late.admitted(), late.degraded()), (LIMIT, 0), "late is exact");
    fleet.iter().for_each(assert_never_degraded);
    // More at once than a node has calls under way: who waits behind a slow one is sent all the same.
    let crowded = Load::closed(fleet.addresses(), 6).body(|_| key("crowd")).send(120);
    crowded.assert_answered();
    assert_eq!(
        (crowded.admitted(), crowded.degraded()),
        (LIMIT, 0),
        "late is exact, in a crowd too"
    );
    let breaker_openings: f64 = fleet.iter().map(breaker_openings).sum();
    assert!(
        breaker_openings == 0.0,
        "Redis answers in time, and was given up {breaker_openings} times"
    );

    proxy.set(Fault::Delay(T * 2));
    let length = Duration::from_secs(stage.scale().pick(3, 20));
    let lost = Load::open(fleet.addresses(), 60).during(|| wait_for(length));
    lost.assert_answered();
    let slowest = lost.slowest();
    assert!(slowest < T + SLACK, "the slowest answer took {slowest:?}");
    assert!(lost.degraded() * 10 > lost.count() * 9, "{} degraded", lost.degraded());
    proxy.set(Fault::Pass);
    let back = fleet.iter().map(Node::wait_exact).max().expect("there are nodes");
    assert_exact(&fleet.addresses());
    format!(
        "T = 1 s; +T/2: {LIMIT} of {LIMIT} admitted, none degraded, slowest {}; six at once: {} of {} \
         degraded, no trip; +2T: {} of {} degraded, slowest {}; {}",
        format_time(late.slowest()),
        crowded.degraded(),
        crowded.count(),
        lost.degraded(),
        lost.count(),
        format_time(slowest),
        assert_recovered(back)
    )
}
