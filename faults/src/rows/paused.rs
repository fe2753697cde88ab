//! A node of ours that does not run for a while.

use std::thread;
use std::time::{Duration, Instant};

use super::common::{assert_back, assert_exact, trips};
use crate::client::inline_within;
use crate::load::Load;
use crate::passage::pass;
use crate::redis;
use crate::stage::Stage;
use crate::tally::Heard;

const BURST: u64 = 40;
/// A token in a second and a half: few come back while it is looked.
const REFILL: Duration = Duration::from_secs(60);
/// Those who ask while it sleeps, and wait.
const WAITING: u64 = 30;

pub(super) fn a_node_that_slept_admits_one_burst_at_most(stage: &Stage) -> String {
    let server = redis::start();
    let node = stage.node().redis(&redis::url(&server)).start();
    let address = vec![node.address()];
    let question = inline_within("k", 1, ("token_bucket", BURST, REFILL));
    let ask = |count| Load::closed(address.clone(), 2).asking(|_| question.clone()).ask(count);
    let first = ask(2 * BURST);
    let sleep = Duration::from_secs(stage.scale().pick(6, 60));
    let clients = usize::try_from(WAITING).expect("a number");
    let many = Load::closed(address.clone(), clients).asking(|_| question.clone());
    let (woken, waited) = thread::scope(|scope| {
        node.pause();
        let waiting = scope.spawn(|| many.ask(WAITING));
        pass(sleep);
        let woken = Instant::now();
        node.resume();
        (woken, waiting.join().expect("all are answered"))
    });
    let after = ask(2 * BURST);
    let took = woken.elapsed();
    [&first, &waited, &after].into_iter().for_each(crate::tally::Tally::assert_answered);
    let passed = |is_degraded: bool| {
        let is_meant = |heard: &Heard| heard.is_allowed && heard.is_degraded == is_degraded;
        waited.only(is_meant).count() + after.only(is_meant).count()
    };
    let (by_store, by_share) = (passed(false) as u64, passed(true) as u64);
    // What comes back in the time that it took to look.
    let refilled = 1 + (took.as_secs() + 1) * BURST / REFILL.as_secs();
    assert!(by_store <= BURST + refilled, "{by_store} at once by a bucket of {BURST}");
    assert!(by_share <= BURST + refilled, "{by_share} at once by its share of {BURST}");
    let trips = trips(&node);
    assert!(trips <= 1.0, "the breaker opened {trips} times");
    let back = assert_back(node.wait_exact());
    assert_exact(&address);
    format!(
        "asleep for {sleep:?}, {} answers: {by_store} at once by the bucket of {BURST}, {by_share} by its \
         share; {trips} trips; {back}",
        waited.count() + after.count()
    )
}
