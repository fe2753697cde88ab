//! What the tests of tollgate share, and never ship.
//!
//! - [`oracle`]: every algorithm once more, slowly and with exact fractions, to compare with.
//! - [`faulty`]: a store that fails when it is told to.
//! - [`history`]: random histories of one key, replayable from a seed.
//! - [`mod@conformance`]: one suite for every [`Store`](tollgate::Store); [`conformance!`] makes its tests.
//! - [`simulator`]: an hour of a fleet in virtual time, and all that may go wrong in it.
//! - [`vectors`]: golden vectors that another language can replay.
//! - [`server`]: real servers, started and stopped.
//! - [`proxy`]: what a network does to those who talk to them.
//! - [`vitals`]: what the system tells of other processes.
//! - [`mod@clock`]: wall clocks of other programs, right or wrong.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::must_use_candidate,
    reason = "this is test code: it fails by panicking, at once and by name"
)]

pub mod answer;
pub mod clock;
pub mod conformance;
pub mod faulty_store;
pub mod history;
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
