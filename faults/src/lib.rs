//! Runs the fault matrix: breaks what Tollgate depends on, row by row, and reports what users then see.
//!
//! A [`row`] is one fault. It starts real servers and nodes on a [`stage`], breaks something while [`load`]
//! sends requests, and asserts the results. The [`table`] prints one line per row of [`rows`]. After each row the
//! output of all nodes is searched for the secrets of the [`canary`].

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::must_use_candidate,
    clippy::missing_panics_doc,
    reason = "test code fails by panicking"
)]

pub mod canary;
pub mod cli;
pub mod client;
pub mod disk;
pub mod endpoints;
pub mod fleet;
pub mod flood;
pub mod front_end;
pub mod grpc;
pub mod held_calls;
pub mod jobs;
pub mod load;
pub mod memory_cap;
pub mod node;
pub mod override_api;
pub mod page;
pub mod policy;
pub mod redis;
pub mod row;
pub mod rows;
pub mod run;
pub mod scale;
pub mod scratch;
pub mod setup;
pub mod side_load;
pub mod slow_client;
pub mod soak;
pub mod stage;
pub mod table;
pub mod tally;
pub mod timing;
pub mod waiting;
