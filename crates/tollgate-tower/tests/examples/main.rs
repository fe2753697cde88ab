//! Runs the examples as separate processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests and their helpers fail by panicking"
)]

#[cfg(feature = "metrics")]
mod axum_api;
mod console_output;
mod process;
mod tonic_health;
