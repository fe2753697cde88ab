//! A suspended node.

use std::thread;
use std::time::{Duration, Instant};

use super::common::{assert_exact, breaker_openings, check_recovery};
use crate::client::inline_within;
use crate::load::Load;
use crate::redis;
use crate::stage::Stage;
use crate::tally::RequestResult;
use crate::waiting::wait_for;

const BURST: u64 = 40;
/// The refill time of the burst: one token per 1.5 s, so few refill during the row.
const REFILL: Duration = Duration::from_secs(60);
/// The number of requests that are sent while the node is suspended.
const WAITING: u64 = 30;

pub(super) fn suspended_node_admits_at_most_one_burst(stage: &Stage) -> String {
    let server = redis::start();
    let node = stage.node().redis(&redis::url(&server)).start();
    let address = vec![node.address()];
    let query = inline_within("k", 1, ("token_bucket", BURST, REFILL));
    let send = |count| Load::closed(address.clone(), 2).body(|_| query.clone()).send(count);
    let first = send(2 * BURST);
    let suspension = Duration::from_secs(stage.scale().pick(6, 60));
    let clients = usize::try_from(WAITING).expect("a number");
    let many = Load::closed(address.clone(), clients).body(|_| query.clone());
    let (resumed, waited) = thread::scope(|scope| {
        node.pause();
        let waiting = scope.spawn(|| many.send(WAITING));
        wait_for(suspension);
        let resumed = Instant::now();
        node.resume();
        (resumed, waiting.join().expect("all requests have responses"))
    });
    let after = send(2 * BURST);
    let took = resumed.elapsed();
    let slowest = waited.slowest();
    assert!(slowest >= suspension / 2, "the node was not suspended: {slowest:?}");
    [&first, &waited, &after].into_iter().for_each(|tally| tally.assert_answered(stage));
    let admitted = |is_degraded: bool| {
        let matches =
            |result: &RequestResult| result.is_allowed && result.is_degraded == is_degraded;
        waited.only(matches).count() + after.only(matches).count()
    };
    let (by_store, by_share) = (admitted(false) as u64, admitted(true) as u64);
    // The refill during the measurement.
    let refilled = 1 + (took.as_secs() + 1) * BURST / REFILL.as_secs();
    assert!(by_store <= BURST + refilled, "Redis admitted {by_store} with a burst of {BURST}");
    assert!(by_share <= BURST + refilled, "the share admitted {by_share} with a burst of {BURST}");
    let openings = breaker_openings(&node);
    stage.check_time(openings <= 1.0, || format!("the breaker opened {openings} times"));
    let back = check_recovery(stage, node.wait_exact());
    assert_exact(stage, &address);
    format!(
        "suspended for {suspension:?}, {} answers: with a burst of {BURST}, Redis admitted {by_store} and the share \
         {by_share}; breaker opened {openings} times; {back}",
        waited.count() + after.count()
    )
}
