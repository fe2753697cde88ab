//! Each broken rule of the protocol has a counterexample, so the model would find the rule broken in the product.

use stateright::{Checker, Model};

use crate::defect::Defect;
use crate::model::{BOUND, LeaseModel};
use crate::numbers::Numbers;
use crate::trace;

/// Asserts that the checker finds a counterexample. Returns it as text: the shortest one, one line for each event.
fn counterexample(numbers: &Numbers, defect: Defect) -> String {
    let model = LeaseModel { numbers: numbers.clone(), defect: Some(defect), is_reduced: false };
    let checker = model.checker().spawn_bfs().join();
    let path = checker.assert_any_discovery(BOUND);
    let text = trace::describe(path, numbers);
    println!("{defect:?} under {:?}:\n{text}", numbers.limit.algorithm());
    text
}

fn bucket() -> Numbers {
    Numbers::token_bucket(4, 1, 2)
}

fn window() -> Numbers {
    Numbers::sliding_window(2, 2, 1)
}

#[test]
fn a_lease_debited_like_a_take_exceeds_burst_and_rate() {
    let text = counterexample(&bucket(), Defect::PlainDebit);
    let events: Vec<&str> = text.lines().map(|line| line[5..60].trim()).collect();
    let before = ["node 0 requests a lease", "the store grants 1 to node 0", "a tick passes"];
    let takes = ["the store admits a request"; 4];
    let after = ["the reply reaches node 0", "node 0 admits a request from a lease"];
    assert_eq!(events, [&before[..], &takes, &after].concat(), "{text}");
    assert!(text.trim_end().ends_with("store 4, admitted EXCEEDED of 4"), "{text}");
}

/// Without the longer time, the store forgets a lease that was debited when it began and spent at its end.
#[test]
fn a_log_that_counts_no_longer_than_the_window_exceeds_it() {
    counterexample(&Numbers::sliding_window_without_hold(2, 2, 2), Defect::PlainLog);
}

#[test]
fn leases_kept_past_their_end_exceed_the_limit() {
    counterexample(&bucket(), Defect::KeptPastEnd);
    counterexample(&window(), Defect::KeptPastEnd);
    counterexample(&Numbers::fixed_window(2, 3, 2), Defect::KeptPastEnd);
}

#[test]
fn a_hold_counted_from_the_reply_exceeds_the_limit() {
    counterexample(&bucket(), Defect::HoldFromReply);
    counterexample(&window(), Defect::HoldFromReply);
    counterexample(&Numbers::fixed_window(2, 3, 2), Defect::HoldFromReply);
}

#[test]
fn a_lease_kept_past_its_window_exceeds_the_limit() {
    counterexample(&Numbers::fixed_window(2, 3, 2), Defect::KeptPastWindow);
}

#[test]
fn events_read_at_the_reply_exceed_the_limit_after_a_reset() {
    counterexample(&bucket(), Defect::EventsFromReply);
}

#[test]
fn ignored_events_exceed_the_limit_after_a_reset() {
    counterexample(&bucket(), Defect::EventsIgnored);
}

#[test]
fn a_suspended_node_that_ignores_its_wall_clock_exceeds_the_limit() {
    let bucket = bucket().with_nodes(1).with_disturbances(1);
    counterexample(&bucket, Defect::MonotonicClockOnly);
}

#[test]
fn unspent_quota_returned_twice_exceeds_the_limit() {
    counterexample(&bucket(), Defect::UnspentReturnedTwice);
}

/// The bound after a failover is not too wide: some loss is admitted again.
#[test]
fn a_failover_adds_something() {
    counterexample(&bucket().with_failovers(1), Defect::FailoverIsFree);
}
