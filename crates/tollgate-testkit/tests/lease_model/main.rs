//! A model of the lease protocol, of which a model checker explores all states.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests and their helpers fail by panicking"
)]

mod action;
mod bound;
mod defect;
mod fleet;
mod model;
mod node;
mod numbers;
mod store;
mod trace;

use std::time::Instant;

use stateright::{Checker, Model};

use defect::Defect;
use model::{BOUND, LeaseModel};
use numbers::Numbers;

#[test]
fn measure() {
    let text = std::env::var("M").unwrap_or_default();
    let v: Vec<u64> = text.split(',').filter_map(|x| x.parse().ok()).collect();
    let n = match v[0] {
        0 => Numbers::token_bucket(v[1], v[2], v[3] as u8),
        1 => Numbers::fixed_window(v[1], v[2] as u8, v[3] as u8),
        _ => Numbers::sliding_window(v[1], v[2] as u8, v[3] as u8),
    };
    let n = n.with_nodes(v[4] as usize).with_disturbances(v[5] as u8).with_failovers(v[6] as u8);
    let defect = [None, Some(Defect::PlainDebit), Some(Defect::KeptPastEnd), Some(Defect::HoldFromReply), Some(Defect::KeptPastWindow), Some(Defect::EventsFromReply), Some(Defect::MonotonicClockOnly), Some(Defect::EventsIgnored), Some(Defect::UnspentReturnedTwice), Some(Defect::FailoverIsFree)][v[7] as usize];
    let begun = Instant::now();
    let model = LeaseModel { numbers: n.clone(), defect, is_reduced: v[9] == 1 };
    let checker = model.checker().threads(v[8] as usize).target_state_count(120_000_000).spawn_bfs().join();
    println!("{text} {defect:?}: unique {} all {} depth {} {:?}", checker.unique_state_count(), checker.state_count(), checker.max_depth(), begun.elapsed());
    for (name, path) in checker.discoveries() {
        if name == BOUND { println!("{}", trace::describe(path, &n)); } else { println!("found: {name}"); }
    }
}
