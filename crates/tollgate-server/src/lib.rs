//! The tollgate service and its command line.
//!
//! A request comes in as bytes, becomes a question (`wire`), is decided by the one
//! [`Limiter`](tollgate::Limiter), and leaves as bytes again. Nothing here runs an algorithm.

mod access;
mod administer;
mod app;
mod backend;
mod census;
mod cli;
mod client;
mod durable;
mod error;
mod http;
mod in_use;
mod keeper;
mod live;
mod membership;
mod metrics;
mod notify;
mod opened;
mod operate;
mod policy_file;
mod pulse;
mod regular_file;
mod reload;
mod saved_state;
mod serve;
mod settings;
mod settled;
mod shutdown;
mod store_watch;
mod telemetry;
mod tls;
mod twin;
mod warnings;
mod wire;

pub use cli::{Cli, Exit, run};
pub use error::{ApiError, ApiErrorKind};
