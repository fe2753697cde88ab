//! The JSON of a new override: what it replaces and what it keeps.

use std::sync::Arc;

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Algorithm, Limit, LimitChange, Override, OverrideProposal};

use super::override_view::OverrideResponse;
#[cfg(test)]
use crate::reference_tests::overrides::AdminOverride;

/// Response of `PUT /admin/external/clients/{id}/limits`: the override, all overrides of the client with it, and its
/// effect.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetOverrideResponse<'a> {
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "AdminOverride"))]
    set: OverrideResponse<'a>,
    /// All overrides of the client, at most one per rule.
    #[cfg_attr(test, schemars(with = "Vec<AdminOverride>"))]
    overrides: Vec<OverrideResponse<'a>>,
    /// The limits of the client that change.
    replaces: Vec<LimitChangeView<'a>>,
    /// The limits of the client in the same rules that stay.
    keeps: Vec<KeptLimitView<'a>>,
}

/// A limit of a client before and after an override.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "LimitChange"))]
struct LimitChangeView<'a> {
    rule: &'a str,
    limit_name: &'a str,
    /// The limit that applied, such as `10/min`; null for an additional limit.
    before: Option<String>,
    /// The limit that applies, such as `50/min`; null if it is removed.
    after: Option<String>,
    /// The burst before, if it is not the count.
    #[serde(skip_serializing_if = "Option::is_none")]
    burst_before: Option<u64>,
    /// The burst after, if it is not the count.
    #[serde(skip_serializing_if = "Option::is_none")]
    burst_after: Option<u64>,
}

/// A limit that stays.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "KeptLimit"))]
struct KeptLimitView<'a> {
    rule: &'a str,
    limit_name: &'a str,
    /// The limit, such as `100/h`.
    limit: String,
    /// The burst, if it is not the count.
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
}

impl<'a> SetOverrideResponse<'a> {
    /// Encodes a proposal; `all` are the overrides of the client with it. `None` for a proposal without overrides.
    pub(crate) fn new(
        client: (&str, &str),
        proposal: &'a OverrideProposal,
        all: &'a [Arc<Override>],
        policy: &'a Policy,
    ) -> Option<Self> {
        let mut set = OverrideResponse::new(client, proposal.overrides.first()?, all, policy);
        set.set_rules(proposal.rules());
        Some(Self {
            set,
            overrides: OverrideResponse::all(client, all, policy),
            replaces: proposal.replaces.iter().map(LimitChangeView::new).collect(),
            keeps: proposal.keeps.iter().map(KeptLimitView::new).collect(),
        })
    }
}

impl<'a> LimitChangeView<'a> {
    fn new(change: &'a LimitChange) -> Self {
        let text = |limit: &Option<Limit>| limit.as_ref().map(ToString::to_string);
        Self {
            rule: &change.rule,
            limit_name: &change.name,
            before: text(&change.before),
            after: text(&change.after),
            burst_before: change.before.as_ref().and_then(unusual_burst),
            burst_after: change.after.as_ref().and_then(unusual_burst),
        }
    }
}

impl<'a> KeptLimitView<'a> {
    fn new(limit: &'a Limit) -> Self {
        Self {
            rule: limit.rule(),
            limit_name: limit.name(),
            limit: limit.to_string(),
            burst: unusual_burst(limit),
        }
    }
}

/// Returns the burst of a token bucket if it differs from the count.
fn unusual_burst(limit: &Limit) -> Option<u64> {
    let is_bucket = limit.algorithm() == Algorithm::TokenBucket;
    Some(limit.capacity()).filter(|burst| is_bucket && *burst != limit.count())
}
