//! Runs the examples as separate processes.

#[cfg(feature = "metrics")]
mod axum_api;
mod console_output;
#[cfg(feature = "axum")]
mod llm_gateway;
mod process;
mod tonic_health;
