//! A Redis that replies late.

use std::time::Duration;

use tollgate_testkit::proxy::{Fault, Proxy};

use super::common::{
    assert_exact, assert_never_degraded, breaker_openings, check_others, check_recovery,
    check_slowest,
};
use crate::client::key;
use crate::front_end::{FrontEnd, Query};
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client_everywhere};
use crate::redis;
use crate::side_load::{self, Tallies};
use crate::stage::Stage;
use crate::table::format_time;
use crate::waiting::wait_for;

/// The Redis time-out of this row: half of it is much more than the delay of a busy machine.
const T: Duration = Duration::from_secs(1);
const LIMIT: usize = 40;

pub(super) fn half_a_timeout_is_exact_and_two_are_degraded(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    let setup = stage
        .node()
        .all_front_ends()
        .redis(&redis::through(&proxy))
        .policy(&per_client_everywhere("40/h", Loss::Local));
    let fleet = setup.with("redis-timeout-ms", "1000").start_fleet(2);
    proxy.set(Fault::Delay(T / 2));
    let count = stage.scale().pick(60, 600);
    let (late, late_others) = side_load::during(
        &fleet[0],
        |_| Query::of("side"),
        || Load::closed(fleet.addresses(), 2).send(count),
    );
    let (others_admitted, is_exact) = admitted_by_store(&late_others);
    assert!(
        is_exact,
        "{others_admitted:?} of {LIMIT} admitted over RESP with /auth, and over gRPC"
    );
    late.assert_answered(stage);
    assert_eq!((late.admitted(), late.degraded()), (LIMIT, 0), "late replies are exact");
    assert!(late.slowest() >= T / 2, "no reply was late: {:?}", late.slowest());
    fleet.iter().for_each(assert_never_degraded);
    // More concurrent requests than a node has calls in flight: queued calls are sent too.
    let queued = Load::closed(fleet.addresses(), 6).body(|_| key("queued")).send(120);
    queued.assert_answered(stage);
    assert_eq!(
        (queued.admitted(), queued.degraded()),
        (LIMIT, 0),
        "late replies are exact, also with queued calls"
    );
    let openings: f64 = fleet.iter().map(breaker_openings).sum();
    assert!(openings == 0.0, "Redis replies in time, and the breaker opened {openings} times");

    proxy.set(Fault::Delay(T * 2));
    let duration = Duration::from_secs(stage.scale().pick(3, 20));
    let (timed_out, others) = side_load::during(
        &fleet[0],
        |_| Query::of("side"),
        || Load::open(fleet.addresses(), 60).during(|| wait_for(duration)),
    );
    timed_out.assert_answered(stage);
    let others = check_others(stage, &others, T);
    let slowest = timed_out.slowest();
    check_slowest(stage, slowest, T);
    assert!(timed_out.degraded() * 10 > timed_out.count() * 9, "{} degraded", timed_out.degraded());
    proxy.set(Fault::Pass);
    let back = fleet.iter().map(Node::wait_exact).max().expect("there are nodes");
    assert_exact(stage, &fleet.addresses());
    format!(
        "T = 1 s; +T/2: {LIMIT} of {LIMIT} admitted, none degraded, slowest {}; six concurrent: {} of {} degraded, \
         breaker closed; +2T: {} of {} degraded ({others}), slowest {}; {}",
        format_time(late.slowest()),
        queued.degraded(),
        queued.count(),
        timed_out.degraded(),
        timed_out.count(),
        format_time(slowest),
        check_recovery(stage, back)
    )
}

/// The numbers that the store admitted over RESP and forward auth, which share a counter, and over gRPC; and whether they are
/// as many as the limit permits.
fn admitted_by_store(others: &Tallies) -> ([usize; 2], bool) {
    let sum = |is_grpc: bool| {
        let wanted =
            others.iter().filter(|(front_end, _)| (*front_end == FrontEnd::Grpc) == is_grpc);
        wanted.fold((0, 0), |(admitted, count), (_, tally)| {
            (admitted + tally.admitted(), count + tally.count())
        })
    };
    let sums = [sum(false), sum(true)];
    let is_exact = sums.iter().all(|(admitted, count)| *admitted == LIMIT.min(*count));
    (sums.map(|(admitted, _)| admitted), is_exact)
}
