//! Integration tests: the inbound layer, outbound limiters, paced clients, overrides, headers and the examples. One
//! binary, because each links every dependency.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests and their helpers fail by panicking"
)]

#[cfg(feature = "axum")]
mod admin;
mod examples;
mod headers;
mod inbound;
mod inbound_leases;
mod inbound_overrides;
#[cfg(feature = "metrics")]
mod metrics;
mod outbound;
mod outbound_blocking;
mod outbound_cancellation;
mod outbound_fixture;
mod outbound_latency;
mod outbound_processes;
mod outbound_queue;
mod outbound_redis;
mod outbound_registry;
mod pace;
#[cfg(feature = "reqwest")]
mod pace_client;
mod usage;
