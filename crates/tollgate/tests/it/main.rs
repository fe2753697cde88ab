//! Integration tests of the library, one file per topic.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests and their helpers fail by panicking"
)]

mod algorithms;
mod allocation;
mod bounds;
mod calendar;
mod capacity;
mod clocks;
mod concurrency;
mod conformance;
mod documentation;
mod dyn_store;
mod errors;
mod eviction;
mod extremes;
mod facts;
mod fallback;
mod first_call;
mod fleet_simulation;
mod headers;
mod identities;
mod lease_bounds;
mod lease_simulation;
mod leases;
mod limiter;
mod listings;
mod local;
mod operations;
mod rates;
mod refusals;
mod reservation_streams;
mod reservations;
mod simulation;
mod snapshot_fuzz;
mod snapshot_validation;
mod snapshots;
mod stores;
mod vectors;
