//! Benchmarks of the HTTP server, compared with a peer and a constant response, each in its own process.
//!
//! A [`candidate`] is a running [`server`](crate::server) and its requests; tollgate also has a [`policy`]. The
//! [`load`] generator executes one [`task`] in another process: it sends each [`request`] as soon as it has the
//! previous [`response`], reads the server's [`cpu`](crate::cpu) time and prints a [`sample`]. A [`runner`] runs
//! every candidate once per round and collects the [`figures`]. The measurements are [`comparison`],
//! [`key_counts`] and [`policies`], collected in [`report`].

pub mod candidate;
pub mod comparison;
mod connection;
pub mod constant;
pub mod figures;
pub mod key_counts;
pub mod load;
pub mod policies;
pub mod policy;
pub mod report;
pub mod request;
pub mod response;
mod run_state;
pub mod runner;
pub mod sample;
pub mod scale;
pub mod task;
