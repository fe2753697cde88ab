//! The tollgate service and its command line.
//!
//! A front end decodes a request into a call of [`api::Service`], and encodes the result. This crate contains no rate
//! limiting algorithm.

mod access;
pub mod api;
mod cli;
mod error;
mod events;
mod files;
mod grpc;
mod http;
pub mod listener;
mod metrics;
mod node;
#[cfg(test)]
mod reference_tests;
mod replay;
mod resp;
mod serve;
mod settings;
mod shutdown;
mod store;
mod telemetry;
mod tls;
mod wire;

pub use cli::{Cli, Exit, parse_args, run, run_with};
pub use error::{ApiError, ApiErrorKind, GrpcCode, Statuses};
pub use serve::FrontEnd;
