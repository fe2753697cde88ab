//! What the Redis store promises, over real servers, one file a promise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking, and their helpers too"
)]

mod acl;
mod clusters;
mod conformance;
mod cuts;
mod directory;
mod drawn;
mod equal;
mod expiry;
mod first_call;
mod fixture;
mod foreign_keys;
mod memory_full;
mod node_reports;
mod overrides;
mod processes;
mod read_only;
mod refusals;
mod scripts_lost;
mod secrets;
mod sentinels;
mod split_brain;
mod tally;
mod urls;
mod waits;
