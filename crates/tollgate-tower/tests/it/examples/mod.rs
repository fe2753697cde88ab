//! Runs the examples as separate processes.

#[cfg(feature = "metrics")]
mod axum_api;
mod console_output;
mod process;
mod tonic_health;
