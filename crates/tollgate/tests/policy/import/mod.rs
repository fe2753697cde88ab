//! Imports of other rate limiters' configurations: the policy decides like an independent model of the original.

mod calendar;
mod differential;
mod envoy_model;
mod limitador_model;
mod messages;
mod output;

use tollgate::policy::{self, ImportFormat, ImportedPolicy};

/// The result of the original or of the imported policy for one descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// No limit is configured for the descriptor.
    NoLimit,
    /// The descriptor is allowed without counting.
    Unlimited,
    /// The descriptor is counted.
    Limited { is_allowed: bool, limit: u64, remaining: u64 },
}

fn import(format: ImportFormat, files: &[(&str, &str)]) -> ImportedPolicy {
    policy::import(format, files).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns text as a YAML scalar in double quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
