//! Overrides as they are shown.

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Override, OverrideEffect, OverrideLimit, rounding};

use super::time::rfc3339;

/// An override, without whose it is.
#[derive(Debug, Serialize)]
pub(crate) struct OverrideView<'a> {
    limits: Vec<OwnLimitView<'a>>,
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    set_at: String,
    expires_at: Option<String>,
}

#[derive(Debug, Serialize)]
struct OwnLimitView<'a> {
    limit: u64,
    window_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl<'a> OverrideView<'a> {
    pub(crate) fn of(own: &'a Override) -> Self {
        Self {
            limits: own.limits().iter().map(OwnLimitView::of).collect(),
            rule: own.rule.as_deref(),
            reason: Some(&own.reason),
            author: Some(&own.author),
            set_at: rfc3339(own.set_at),
            expires_at: own.expires_at.map(rfc3339),
        }
    }
}

impl<'a> OwnLimitView<'a> {
    fn of(own: &'a OverrideLimit) -> Self {
        Self {
            limit: own.count,
            window_ms: own.window.map(rounding::millis),
            burst: own.burst,
            algorithm: own.algorithm.map(tollgate::Algorithm::as_str),
            name: own.name.as_deref(),
        }
    }
}

/// An override with whose it is, and the rules that it changes.
#[derive(Debug, Serialize)]
pub(crate) struct ToldOverride<'a> {
    client: String,
    tenant: String,
    #[serde(flatten)]
    own: OverrideView<'a>,
    /// The rules of the policy in force that it changes.
    applies_to: Vec<&'a str>,
    /// Why it does not change all that it should, or not for every request.
    problem: Option<String>,
}

impl ToldOverride<'_> {
    /// The same for those who ask for decisions: why a client has limits of its own is not theirs to know.
    pub(crate) fn without_reasons(self) -> Self {
        Self { own: OverrideView { reason: None, author: None, ..self.own }, ..self }
    }
}

/// A client's override under a policy.
pub(crate) fn told<'a>(
    (client, tenant): (&str, &str),
    own: &'a Override,
    policy: &'a Policy,
) -> ToldOverride<'a> {
    let OverrideEffect { rules: applies_to, problem, .. } = own.effect(policy);
    let problem = problem.map(|problem| problem.to_string());
    let (client, tenant) = (client.to_owned(), tenant.to_owned());
    ToldOverride { client, tenant, own: OverrideView::of(own), applies_to, problem }
}
