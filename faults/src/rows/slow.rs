//! A Redis that answers late.

use std::time::Duration;

use tollgate_testkit::proxy::{Fault, Proxy};

use super::common::{SLACK, assert_back, assert_exact, assert_undisturbed, trips};
use crate::client::key;
use crate::load::Load;
use crate::node::Node;
use crate::passage::pass;
use crate::policy::{Loss, each};
use crate::redis;
use crate::stage::Stage;
use crate::table::shown;

/// The time-out of this row: half of it is much more than a busy machine adds.
const T: Duration = Duration::from_secs(1);
const LIMIT: usize = 40;

pub(super) fn half_the_time_out_is_exact_and_twice_is_degraded(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    let setup = stage.node().redis(&redis::through(&proxy)).policy(&each("40/h", Loss::Local));
    let fleet = setup.with("redis-timeout-ms", "1000").start_fleet(2);
    proxy.set(Fault::Delay(T / 2));
    let late = Load::closed(fleet.addresses(), 2).ask(stage.scale().pick(60, 600));
    late.assert_answered();
    assert_eq!((late.admitted(), late.degraded()), (LIMIT, 0), "late is exact");
    fleet.iter().for_each(assert_undisturbed);
    // More at once than a node has calls under way: who waits behind a slow one is sent all the same.
    let crowded = Load::closed(fleet.addresses(), 6).asking(|_| key("crowd")).ask(120);
    crowded.assert_answered();
    assert_eq!(
        (crowded.admitted(), crowded.degraded()),
        (LIMIT, 0),
        "late is exact, in a crowd too"
    );
    let trips: f64 = fleet.iter().map(trips).sum();
    assert!(trips == 0.0, "Redis answers in time, and was given up {trips} times");

    proxy.set(Fault::Delay(T * 2));
    let length = Duration::from_secs(stage.scale().pick(3, 20));
    let lost = Load::open(fleet.addresses(), 60).during(|| pass(length));
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
        shown(late.slowest()),
        crowded.degraded(),
        crowded.count(),
        lost.degraded(),
        lost.count(),
        shown(slowest),
        assert_back(back)
    )
}
