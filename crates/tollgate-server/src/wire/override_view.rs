//! The JSON of overrides.

use std::sync::Arc;

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{OtherLimits, Override, OverrideEffect, OverrideLimit, Unit, rounding};

use super::time::rfc3339;
#[cfg(test)]
use crate::reference_tests::{names, overrides::AdminOverride};

/// An override without its client.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OverrideView<'a> {
    #[cfg_attr(test, schemars(length(min = 1)))]
    limits: Vec<OverrideLimitView<'a>>,
    /// The rule; null for an override that an earlier version stored for all rules.
    rule: Option<&'a str>,
    /// Whether the other limits of the rule are removed for the client.
    only: bool,
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
    /// Default: the unit of the rule's limit that the entry replaces, else requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl<'a> OverrideView<'a> {
    pub(crate) fn new(override_: &'a Override) -> Self {
        Self {
            limits: override_.limits().iter().map(OverrideLimitView::new).collect(),
            rule: override_.rule.as_deref(),
            only: override_.other_limits == OtherLimits::Remove,
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
            unit: limit.unit.as_ref().map(Unit::as_str),
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
    /// Encodes one of the overrides `all` of a client.
    pub(crate) fn new(
        (client, tenant): (&str, &str),
        override_: &'a Override,
        all: &[Arc<Override>],
        policy: &'a Policy,
    ) -> Self {
        let OverrideEffect { rules: applies_to, problem, .. } = override_.effect_among(all, policy);
        Self {
            client: client.to_owned(),
            tenant: tenant.to_owned(),
            view: OverrideView::new(override_),
            applies_to,
            problem: problem.map(|problem| problem.to_string()),
        }
    }

    /// Encodes all overrides of a client.
    pub(crate) fn all(
        client: (&str, &str),
        all: &'a [Arc<Override>],
        policy: &'a Policy,
    ) -> Vec<Self> {
        all.iter().map(|override_| Self::new(client, override_, all, policy)).collect()
    }

    /// Sets the rules that the request changes, of which this override is for the first.
    pub(super) fn set_rules(&mut self, rules: Vec<&'a str>) {
        self.applies_to = rules;
    }

    /// Removes reason and author, which only admins may read.
    pub(crate) fn without_reasons(self) -> Self {
        Self { view: OverrideView { reason: None, author: None, ..self.view }, ..self }
    }
}

/// The overrides of a client: the newest one, and all of them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ClientOverridesResponse<'a> {
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "AdminOverride"))]
    newest: OverrideResponse<'a>,
    /// All overrides of the client, at most one per rule.
    #[cfg_attr(test, schemars(with = "Vec<AdminOverride>"))]
    overrides: Vec<OverrideResponse<'a>>,
}

impl<'a> ClientOverridesResponse<'a> {
    /// Encodes the overrides of a client; `None` if there are none.
    pub(crate) fn new(
        client: (&str, &str),
        all: &'a [Arc<Override>],
        policy: &'a Policy,
    ) -> Option<Self> {
        let newest = all.iter().max_by_key(|override_| override_.set_at)?;
        Some(Self {
            newest: OverrideResponse::new(client, newest, all, policy),
            overrides: OverrideResponse::all(client, all, policy),
        })
    }
}
