//! The tollgate service and its command line.
//!
//! A front end parses a request into a query (`wire`), the [`Limiter`](tollgate::Limiter) decides it, and the front end
//! encodes the decision. This crate contains no rate limiting algorithm.

mod access;
mod api;
mod app;
mod atomic_write;
mod backend;
mod bounded_read;
mod cli;
mod client;
mod duplicate_node;
mod error;
mod file_change;
mod http;
mod key_listing;
mod live;
mod live_node_count;
mod membership;
mod metrics;
mod node_report;
mod notify;
mod policy_file;
mod reload;
mod saved_state;
mod serve;
mod settings;
mod shutdown;
mod store_maintenance;
mod store_setup;
mod store_watch;
mod telemetry;
mod tls;
mod warnings;
mod wire;

pub use cli::{Cli, Exit, run};
pub use error::{ApiError, ApiErrorKind};
