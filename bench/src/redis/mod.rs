//! Benchmarks of the Redis store, compared with other methods to get a decision from Redis.
//!
//! A [`deployment`] is a running server or cluster. The [`load`] generator executes one [`task`] in its own
//! process: its callers use one [`method`] with some [`limits`], each sending its next request as soon as it has
//! the reply. It verifies every decision and prints a [`sample`]. A [`runner`] runs every scenario once per round
//! and collects the [`figures`]. Measurements on one server: [`method_comparison`], [`single_caller`],
//! [`refusals`], [`leases`], [`algorithms`], [`redis_benchmark`] and [`memory`], collected in [`report`]. On a cluster:
//! [`cluster_overhead`] and [`cross_slot`], collected in [`cluster_report`].

pub mod admin;
pub mod algorithms;
mod caller;
pub mod cluster_overhead;
pub mod cluster_report;
mod cluster_setup;
pub mod cross_slot;
pub mod deployment;
pub mod figures;
pub mod leases;
pub mod limits;
pub mod load;
pub mod memory;
pub mod method;
pub mod method_comparison;
mod notes;
mod peer_callers;
pub mod redis_benchmark;
pub mod refusals;
pub mod report;
mod run_state;
pub mod runner;
pub mod sample;
pub mod scale;
pub mod single_caller;
mod stored_state;
pub mod task;
mod tollgate_caller;
