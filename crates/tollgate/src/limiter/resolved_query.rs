//! Resolved queries: a query with the limits that apply to it.

use std::borrow::Cow;

use crate::limit::INLINE_RULE;
use crate::plan::{Plan, PlanError};
use crate::policy::{MatchedRule, PolicyPlan};
use crate::query::Inline;

/// A query with the limits that apply to it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResolvedQuery<'a> {
    /// The matching rules of the policy.
    Policy(PolicyPlan<'a>),
    /// The inline limits of the request.
    Inline(&'a Inline),
}

impl ResolvedQuery<'_> {
    pub(crate) fn plan(&self) -> Result<Plan<'_>, PlanError> {
        match self {
            Self::Policy(planned) => planned.plan(),
            Self::Inline(inline) => Ok(inline.plan()),
        }
    }

    /// The rules of the policy that match, in policy order.
    #[must_use]
    pub fn matched(&self) -> &[MatchedRule<'_>] {
        match self {
            Self::Policy(planned) => planned.matched(),
            Self::Inline(_) => &[],
        }
    }

    /// The rule to report if no limit applies.
    pub(crate) fn last_rule(&self) -> &str {
        match self {
            Self::Policy(planned) => planned.rule().name(),
            Self::Inline(_) => INLINE_RULE,
        }
    }

    /// The key that a matching rule counts, in readable form.
    pub(crate) fn key_of(&self, rule: &str) -> Cow<'_, str> {
        match self {
            Self::Inline(inline) => inline.key(),
            Self::Policy(planned) => {
                let matched =
                    planned.matched().iter().find(|matched| matched.rule().name() == rule);
                matched.map_or(Cow::Borrowed(""), MatchedRule::key)
            }
        }
    }
}
