//! The rules of which a rejected override must name one.

use serde::Serialize;
use tollgate::OverrideCandidate;

/// A rule that an override could be for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RuleCandidate {
    rule: String,
    /// The limits of the rule, such as `10/min`.
    limits: Vec<String>,
    /// Whether the rule is a block, which an override replaces only if it names the rule.
    blocks: bool,
}

impl From<&OverrideCandidate> for RuleCandidate {
    fn from(candidate: &OverrideCandidate) -> Self {
        Self {
            rule: candidate.rule.clone(),
            limits: candidate.limits.iter().map(ToString::to_string).collect(),
            blocks: candidate.blocks,
        }
    }
}
