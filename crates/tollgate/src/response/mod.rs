//! What front ends send to clients about a decision: headers and refusal bodies.

mod headers;
mod policy_name;
mod provider_headers;
mod refusal;

pub use headers::{FieldValue, HeaderStyle};
pub use refusal::{Refusal, RefusalStyle};
