//! The service: every operation of a node, with typed requests and replies, for any transport.
//!
//! A front end decodes a request, calls [`Service`], and encodes the reply. Authentication, decisions, metrics, the verdict
//! in the span of a request, and audit are done here, once for all front ends. This module knows no transport.

pub(crate) mod admin;
mod batch;
mod decisions;
mod held;
mod permits;
pub(crate) mod read;
mod reservations;
mod run_to_completion;
mod service;
mod undelivered_permit;

pub use crate::access::{Credentials, Role};
pub use crate::telemetry::Span;
pub use batch::MAX_BATCH;
pub(crate) use batch::ensure_batch_size;
pub(crate) use decisions::{DecisionSeries, ExplainReply};
pub(crate) use held::Held;
pub use service::Service;
pub(crate) use undelivered_permit::UndeliveredPermit;
