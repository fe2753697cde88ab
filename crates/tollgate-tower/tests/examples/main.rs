//! The examples, run as people run them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking, and their helpers too"
)]

mod axum_api;
mod process;
mod shown;
mod tonic_health;
