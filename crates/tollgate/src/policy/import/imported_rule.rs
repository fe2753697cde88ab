//! A rule of an imported policy, before it is written.

use crate::algorithm::CalendarUnit;
use crate::policy::error::{FieldError, Position};
use crate::policy::node_ref::NodeRef;
use crate::request::MAX_FACT_LENGTH;

/// A rule that counts the requests of one domain.
pub(super) struct ImportedRule {
    /// The configuration that the rule was made of.
    pub(super) location: Location,
    /// A readable name, not necessarily valid or unique.
    pub(super) name: String,
    pub(super) domain: String,
    /// Values of other facts that a request must have, as written in a policy.
    pub(super) facts: Vec<(String, String)>,
    /// Values that a request must not have, by fact.
    pub(super) unless: Vec<(String, Vec<String>)>,
    pub(super) per: Vec<String>,
    pub(super) limit: ImportedLimit,
    pub(super) mode: ImportedMode,
}

/// The limit of an imported rule.
pub(super) enum ImportedLimit {
    Unlimited,
    /// A fixed window aligned to the calendar.
    Calendar {
        count: u64,
        unit: CalendarUnit,
        name: Option<String>,
    },
    /// A fixed window that opens with the first request.
    Rolling {
        count: u64,
        seconds: u64,
    },
}

/// How the rule takes part in the decision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportedMode {
    /// The rule decides alone.
    Enforce,
    /// The rule is counted and never refuses.
    Shadow,
    /// The rule applies together with the other rules of the domain, to requests that have the `per` facts.
    Together,
}

/// A position in one of the imported files.
#[derive(Clone, Copy)]
pub(super) struct Location {
    pub(super) file: usize,
    pub(super) position: Position,
}

impl Location {
    /// The start of the first file.
    pub(super) const START: Self = Self { file: 0, position: Position::START };
}

/// Returns text as a value in `match`, where `*` is a wildcard and `\` escapes it.
pub(super) fn literal(text: &str) -> String {
    text.replace('\\', "\\\\").replace('*', "\\*")
}

/// Returns an error if text is too long as a value in `match`.
pub(super) fn check_length(node: NodeRef<'_>, text: &str) -> Result<(), FieldError> {
    if literal(text).len() <= MAX_FACT_LENGTH {
        return Ok(());
    }
    Err(node.invalid(format!("must be at most {MAX_FACT_LENGTH} bytes")))
}
