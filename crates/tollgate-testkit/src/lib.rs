//! Test support shared by the tollgate crates; not published.
//!
//! - [`admission_bound`]: the bound of each algorithm on admissions, without a store.
//! - [`oracle`]: second implementation of every algorithm, slow and with exact fractions, to compare with.
//! - [`faulty_store`]: store that fails on demand.
//! - [`fuzz`]: mutated inputs for parsers, from a corpus and a seed.
//! - [`history`]: random histories of one key, reproducible from a seed.
//! - [`mod@conformance`]: one suite for every [`Store`](tollgate::Store); [`conformance!`] generates its tests.
//! - [`simulator`]: simulation of a fleet in virtual time, with faults.
//! - [`lease_simulator`]: simulation of nodes that lease, in virtual time, with faults.
//! - [`vectors`]: golden vectors, which implementations in other languages can replay.
//! - [`server`]: launcher of real Redis and Valkey servers.
//! - [`proxy`]: TCP proxy that injects network faults.
//! - [`http2`]: HTTP/2 frames by hand, for floods and hostile input.
//! - [`process_stats`]: figures of other processes from the operating system.
//! - [`mod@clock`]: wall clocks of other processes, with an offset.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::must_use_candidate,
    reason = "test code fails by panicking"
)]

pub mod admission_bound;
pub mod answer;
pub mod clock;
pub mod conformance;
pub mod faulty_store;
pub mod fleet;
pub mod fuzz;
pub mod history;
pub mod http2;
pub mod lease_simulator;
pub mod oracle;
pub mod process_stats;
pub mod proxy;
pub mod random;
pub mod runtime;
pub mod server;
pub mod simulator;
pub mod spec;
pub mod vectors;
pub mod wait;
mod watchdog;
