//! Errors: of API calls, with their statuses in every protocol, and of the start of the server.

mod api_error;
mod rule_candidate;
mod serve_error;
mod statuses;

#[cfg(test)]
pub(crate) use api_error::Problem;
pub use api_error::{ApiError, ApiErrorKind};
pub(crate) use rule_candidate::RuleCandidate;
pub(crate) use serve_error::{ServeError, SettingsError};
pub use statuses::{GrpcCode, Statuses};
