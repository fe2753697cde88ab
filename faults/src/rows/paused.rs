//! A node of ours that does not run for a while.

use std::thread;
use std::time::{Duration, Instant};

use super::common::{assert_exact, assert_recovered, breaker_openings};
use crate::client::inline_within;
use crate::load::Load;
use crate::redis;
use crate::stage::Stage;
use crate::tally::RequestResult;
use crate::waiting::wait_for;

const BURST: u64 = 40;
/// A token in a second and a half: few come back while it is looked.
const REFILL: Duration = Duration::from_secs(60);
/// Those who ask while it sleeps, and wait.
const WAITING: u64 = 30;

pub(super) fn suspended_node_admits_at_most_one_burst(stage: &Stage) -> String {
    let server = redis::start();
    let node = stage.node().redis(&redis::url(&server)).start();
    let address = vec![node.address()];
    let question = inline_within("k", 1, ("token_bucket", BURST, REFILL));
    let ask = |count| Load::closed(address.clone(), 2).body(|_| question.clone()).send(count);
    let first = ask(2 * BURST);
    let sleep = Duration::from_secs(stage.scale().pick(6, 60));
    let clients = usize::try_from(WAITING).expect("a number");
    let many = Load::closed(address.clone(), clients).body(|_| question.clone());
    let (woken, waited) = thread::scope(|scope| {
        node.pause();
        let waiting = scope.spawn(|| many.send(WAITING));
        wait_for(sleep);
        let woken = Instant::now();
        node.resume();
        (woken, waiting.join().expect("all are answered"))
    });
    let after = ask(2 * BURST);
    let took = woken.elapsed();
    [&first, &waited, &after].into_iter().for_each(crate::tally::Tally::assert_answered);
    let passed = |is_degraded: bool| {
        let is_meant = |heard: &RequestResult| heard.is_allowed && heard.is_degraded == is_degraded;
        waited.only(is_meant).count() + after.only(is_meant).count()
    };
    let (by_store, by_share) = (passed(false) as u64, passed(true) as u64);
    // What comes back in the time that it took to look.
    let refilled = 1 + (took.as_secs() + 1) * BURST / REFILL.as_secs();
    assert!(by_store <= BURST + refilled, "{by_store} at once by a bucket of {BURST}");
    assert!(by_share <= BURST + refilled, "{by_share} at once by its share of {BURST}");
    let breaker_openings = breaker_openings(&node);
    assert!(breaker_openings <= 1.0, "the breaker opened {breaker_openings} times");
    let back = assert_recovered(node.wait_exact());
    assert_exact(&address);
    format!(
        "asleep for {sleep:?}, {} answers: {by_store} at once by the bucket of {BURST}, {by_share} by its \
         share; {breaker_openings} breaker_openings; {back}",
        waited.count() + after.count()
    )
}
