//! The JSON of overrides.

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Override, OverrideEffect, OverrideLimit, rounding};

use super::time::rfc3339;
#[cfg(test)]
use crate::reference_tests::names;

/// An override without its client.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OverrideView<'a> {
    #[cfg_attr(test, schemars(length(min = 1)))]
    limits: Vec<OverrideLimitView<'a>>,
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "String"))]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "String"))]
    author: Option<&'a str>,
    #[cfg_attr(test, schemars(with = "names::Time"))]
    set_at: String,
    /// The expiry of the override; null for none.
    #[cfg_attr(test, schemars(with = "Option<names::Time>"))]
    expires_at: Option<String>,
}

/// A limit of an override.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "OverrideLimitRecord"))]
struct OverrideLimitView<'a> {
    limit: u64,
    #[cfg_attr(test, schemars(range(min = 1)))]
    window_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    burst: Option<u64>,
    /// Default: the algorithm of the rule's limit with the same window, else `token_bucket`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<names::RequestedAlgorithm>"))]
    algorithm: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl<'a> OverrideView<'a> {
    pub(crate) fn new(override_: &'a Override) -> Self {
        Self {
            limits: override_.limits().iter().map(OverrideLimitView::new).collect(),
            rule: override_.rule.as_deref(),
            reason: Some(&override_.reason),
            author: Some(&override_.author),
            set_at: rfc3339(override_.set_at),
            expires_at: override_.expires_at.map(rfc3339),
        }
    }
}

impl<'a> OverrideLimitView<'a> {
    fn new(limit: &'a OverrideLimit) -> Self {
        Self {
            limit: limit.count,
            window_ms: limit.window.map(rounding::millis),
            burst: limit.burst,
            algorithm: limit.algorithm.map(tollgate::Algorithm::as_str),
            name: limit.name.as_deref(),
        }
    }
}

/// An override with its client and its effect on the active policy.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OverrideResponse<'a> {
    client: String,
    tenant: String,
    #[serde(flatten)]
    view: OverrideView<'a>,
    /// The rules of the active policy that the override changes.
    applies_to: Vec<&'a str>,
    /// Why the override has no effect, or not on all of its rules or requests; null if it has.
    problem: Option<String>,
}

impl<'a> OverrideResponse<'a> {
    pub(crate) fn new(
        client: &str,
        tenant: &str,
        override_: &'a Override,
        policy: &'a Policy,
    ) -> Self {
        let OverrideEffect { rules: applies_to, problem, .. } = override_.effect(policy);
        Self {
            client: client.to_owned(),
            tenant: tenant.to_owned(),
            view: OverrideView::new(override_),
            applies_to,
            problem: problem.map(|problem| problem.to_string()),
        }
    }

    /// Removes reason and author, which only admins may read.
    pub(crate) fn without_reasons(self) -> Self {
        Self { view: OverrideView { reason: None, author: None, ..self.view }, ..self }
    }
}
