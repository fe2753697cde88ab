//! A flapping Redis: one second up, one second down.

use std::time::{Duration, Instant};

use tollgate_testkit::proxy::{Fault, Proxy};

use super::common::{SLACK, T, assert_exact, breaker_openings, check_others, check_recovery};
use crate::client::key;
use crate::front_end::Query;
use crate::load::Load;
use crate::policy::{Loss, per_client_everywhere};
use crate::redis;
use crate::side_load;
use crate::stage::Stage;
use crate::table::format_time;
use crate::waiting::wait_until;

pub(super) fn flapping_redis_fails_no_request(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    let setup = stage
        .node()
        .all_front_ends()
        .redis(&redis::through(&proxy))
        .policy(&per_client_everywhere("1000000/h", Loss::Local));
    let node = setup.start();
    node.wait_exact();
    let rounds = stage.scale().pick(10, 150);
    let load =
        Load::open(vec![node.address()], 200).body(|number| key(&format!("c{}", number % 20)));
    let query = |number| Query::of(format!("c{}", number % 20));
    let (tally, others) = side_load::during(&node, query, || {
        load.during(|| {
            let began = Instant::now();
            for round in 0..rounds {
                proxy.set(Fault::Blackhole);
                wait_until(began + Duration::from_secs(2 * round + 1));
                proxy.set(Fault::Pass);
                wait_until(began + Duration::from_secs(2 * round + 2));
            }
        })
    });
    let others = check_others(stage, &others, T + SLACK);
    let back = node.wait_exact();
    tally.assert_answered(stage);
    let p99 = tally.per_mille(990);
    stage.check_time(p99 < T + SLACK / 2, || format!("p99 is {p99:?}"));
    let slowest = tally.slowest();
    stage.check_time(slowest < T + 2 * SLACK, || format!("the slowest response took {slowest:?}"));
    assert!(
        tally.degraded() > 0 && tally.degraded() < tally.count(),
        "some decisions are degraded, not all"
    );
    assert_exact(stage, &[node.address()]);
    let warnings = node.logged(&["WARN"]);
    assert!(warnings <= 4, "a flapping Redis must not flood the log:\n{}", node.log());
    format!(
        "{} answers ({others}) in {rounds} rounds, no 5xx, {} degraded, p99 {}, slowest {}; breaker opened {} times, \
         {warnings} warnings in the log; {}",
        tally.count(),
        tally.degraded(),
        format_time(p99),
        format_time(slowest),
        breaker_openings(&node),
        check_recovery(stage, back)
    )
}
