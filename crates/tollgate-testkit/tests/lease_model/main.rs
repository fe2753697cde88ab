//! A model of the lease protocol, of which a model checker explores every state.
//!
//! **Modelled**: a store with one key, up to three nodes, and every order of these events: takes, requests for leases in
//! the background and with a waiting caller, grants of one or two tokens, spending in any order, ends of
//! leases, events that revoke them, resets, lost and delayed requests and replies (also of requests that a node has given
//! up), crashes, pauses of a process, suspensions of a machine, steps of wall clocks, and a failover to a replica that
//! lacks the last writes. Between two ticks of time any number of events happens. States are relative to the current
//! time, so runs have no maximum length: all states that can be reached in any time are explored. A node has at most two
//! leases, at most one abandoned request is on its way, and `Numbers` limits disturbances and failovers in a run.
//!
//! **Proven**, for the numbers of each test: in no state has a request been admitted above the bound of the algorithm. A
//! reset starts the bound again, and what a node spends before it receives the event is not counted; after it, a lease
//! from before must not be spent. A failover adds at most what the old primary granted after the replica received its
//! last write, and at most one limit.
//!
//! **Shared with the product**: the store decides by `Parameters::step`, with `Op::Take`, `Op::Lease` and `Op::Refund`;
//! `spendable_for` decides for how long a lease may be spent; `LeaseTime::is_within` compares both clocks of a node. The
//! `LeaseTable` itself is not shared: it hashes at random and has locks, so it is not a state that can be compared. The
//! model has its own few fields for leases and calls (`node.rs`). It has no sizes: it requests leases at any time and
//! grants any of its amounts, so the proof does not depend on how a node sizes its leases. `lease_simulator` runs the `LeaseTable`.
//!
//! **Not modelled**: plans of several limits, refunds, changed limits, a primary that still admits while another has its
//! place, a store whose clock steps, and a suspension during which the wall clock is set back, which hides time from both
//! clocks. A pause between the decision and the response is none: a decision counts when it is made.
//!
//! `TOLLGATE_LEASE_MODEL=full cargo test --release -p tollgate-testkit --test lease_model -- --nocapture` explores three
//! nodes and more faults at once, and prints the numbers of states.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests and their helpers fail by panicking"
)]

mod action;
mod bound;
mod counterexamples;
mod defect;
mod fleet;
mod model;
mod node;
mod numbers;
mod store;
mod trace;

use std::time::Instant;

use stateright::{Checker, Model};

use model::{BOUND, LeaseModel};
use numbers::Numbers;

/// Returns whether to explore more states than there is time for in every test run.
fn is_full() -> bool {
    std::env::var("TOLLGATE_LEASE_MODEL").is_ok_and(|scope| scope == "full")
}

/// Explores all states, and checks that none is above the bound and that leases are held and spent at all. Returns their
/// number.
fn explore(name: &str, numbers: &Numbers) -> usize {
    let begun = Instant::now();
    let model = LeaseModel { numbers: numbers.clone(), defect: None, is_reduced: true };
    let checker = model.checker().threads(if is_full() { 2 } else { 1 }).spawn_bfs().join();
    let (states, transitions) = (checker.unique_state_count(), checker.state_count());
    let seconds = begun.elapsed().as_secs();
    println!("{name}: {states} states, {transitions} transitions, {seconds} s");
    if let Some(path) = checker.discovery(BOUND) {
        panic!("{name}: the limit is exceeded\n{}", trace::describe(path, numbers));
    }
    checker.assert_properties();
    states
}

#[test]
fn leases_of_a_token_bucket_keep_burst_and_rate() {
    let three = Numbers::token_bucket(3, 1, 2).with_nodes(3);
    let states = explore("token bucket, 3 nodes", &three);
    assert!(states >= 100_000, "{states} states");
    explore("token bucket of 4, 2 nodes", &Numbers::token_bucket(4, 1, 2));
    if is_full() {
        explore("token bucket of 4, 3 nodes", &Numbers::token_bucket(4, 1, 2).with_nodes(3));
        // Half a token refills in a tick.
        explore("token bucket with fractions, 2 nodes", &Numbers::token_bucket(3, 2, 2));
    }
}

#[test]
fn leases_of_a_fixed_window_keep_the_count_per_window() {
    let nodes = if is_full() { 3 } else { 2 };
    let window = Numbers::fixed_window(2, 3, 2).with_nodes(nodes);
    explore(&format!("fixed window, {nodes} nodes"), &window);
}

#[test]
fn leases_of_a_sliding_window_keep_the_count_in_any_window() {
    let nodes = if is_full() { 3 } else { 2 };
    let window = Numbers::sliding_window(2, 2, 1).with_nodes(nodes);
    explore(&format!("sliding window, {nodes} nodes"), &window);
}

#[test]
fn pauses_and_clocks_of_nodes_do_not_exceed_the_limit() {
    let nodes = if is_full() { 2 } else { 1 };
    let bucket = Numbers::token_bucket(3, 1, 2).with_nodes(nodes).with_disturbances(1);
    explore(&format!("token bucket with a pause or clock step, {nodes} nodes"), &bucket);
}

#[test]
fn a_failover_adds_at_most_what_it_lost() {
    let nodes = if is_full() { 2 } else { 1 };
    let all = [
        ("token bucket", Numbers::token_bucket(3, 1, 2)),
        ("fixed window", Numbers::fixed_window(2, 3, 2)),
        ("sliding window", Numbers::sliding_window(2, 2, 1)),
    ];
    for (name, numbers) in all {
        let numbers = numbers.with_nodes(nodes).with_failovers(1);
        explore(&format!("{name} with a failover, {nodes} nodes"), &numbers);
    }
}

#[test]
fn a_failover_beside_a_pause_or_clock_step_keeps_the_bound() {
    let bucket = Numbers::token_bucket(3, 1, 2).with_nodes(1);
    let both = bucket.with_failovers(1).with_disturbances(1);
    explore("token bucket with a failover and a pause or clock step, 1 node", &both);
}
