//! What the library promises, one file a promise.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking, and their helpers too"
)]

mod allocation;
mod asking;
mod bounds;
mod calendar;
mod capacity;
mod clocks;
mod concurrency;
mod conformance;
mod documentation;
mod dyn_store;
mod errors;
mod extremes;
mod facts;
mod fallback;
mod first_call;
mod forged;
mod forgetting;
mod headers;
mod identities;
mod limiter;
mod listings;
mod local;
mod rates;
mod refusals;
mod saving;
mod simulation;
mod stores;
mod vectors;
