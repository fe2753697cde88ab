//! The tollgate service and its command line.
//!
//! A request comes in as bytes, becomes a question (`wire`), is decided by the one
//! [`Limiter`](tollgate::Limiter), and leaves as bytes again. Nothing here runs an algorithm.

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
