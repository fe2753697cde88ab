//! What the middleware and the limiters promise, one file a promise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking, and their helpers too"
)]

mod inbound_overrides;
mod outbound;
mod outbound_blocking;
mod outbound_distant;
mod outbound_drops;
mod outbound_fixture;
mod outbound_processes;
mod outbound_queue;
mod outbound_redis;
mod outbound_registry;
mod pace;
#[cfg(feature = "reqwest")]
mod pace_client;
