//! The configured limits and rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tollgate::policy::{FactName, Policy, Rule};
use tollgate::{Limit, Override, Overrides, policy};

use super::scan::PageRequest;
use crate::api::admin::page;
use crate::node::overrides::Client;
#[cfg(test)]
use crate::reference_tests::names;
use crate::wire::decision::{LimitNumbers, window_ms};

/// Response of `/api/limits`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Limits<'a> {
    /// The burst of a token bucket, else the count; null if unlimited.
    default_limit: Option<u64>,
    default_window_ms: Option<u64>,
    /// The count of the first limit of the newest override, by client.
    per_key_limits: BTreeMap<String, u64>,
    /// The cursor of the next page of `per_key_limits`; null on the last page.
    cursor: Option<String>,
    default: RuleView<'a>,
    rules: Vec<RuleView<'a>>,
}

/// A rule of the policy.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Rule"))]
struct RuleView<'a> {
    name: &'a str,
    #[serde(rename = "match")]
    conditions: Vec<Condition<'a>>,
    /// The rule does not match if one of these conditions holds.
    unless: Vec<Condition<'a>>,
    per: Vec<&'a str>,
    unlimited: bool,
    limits: Vec<LimitView<'a>>,
    next: Vec<LimitView<'a>>,
    #[cfg_attr(test, schemars(with = "names::Mode"))]
    mode: &'static str,
    cost: u64,
    #[serde(rename = "continue")]
    continues: bool,
    #[cfg_attr(test, schemars(with = "names::Missing"))]
    missing: &'static str,
    #[cfg_attr(test, schemars(with = "names::OnStoreLoss"))]
    on_store_loss: &'static str,
    #[cfg_attr(test, schemars(with = "names::Distributed"))]
    distributed: &'static str,
}

/// A condition of a rule: the fact has one of these values.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Condition<'a> {
    fact: &'a str,
    any_of: Vec<&'a str>,
}

/// A limit of a rule.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "RuleLimit"))]
struct LimitView<'a> {
    name: &'a str,
    /// What the limit counts.
    #[cfg_attr(test, schemars(with = "names::LimitName"))]
    unit: &'a str,
    #[cfg_attr(test, schemars(with = "names::Algorithm"))]
    algorithm: &'static str,
    #[serde(flatten)]
    numbers: LimitNumbers,
}

/// Returns the limits of the policy and the requested page of the overrides.
pub(super) fn limits<'a>(
    policy: &'a Policy,
    overrides: &Overrides,
    request: &PageRequest,
) -> Limits<'a> {
    let default = policy.default_rule();
    let first = default.limits().first();
    let (per_key_limits, cursor) = per_key(policy, overrides, request);
    Limits {
        default_limit: first.map(Limit::capacity),
        default_window_ms: first.and_then(window_ms),
        per_key_limits,
        cursor,
        default: RuleView::new(default),
        rules: policy.rules().iter().map(RuleView::new).collect(),
    }
}

/// Returns a page of the overridden clients of one tenant, by default the tenant of the policy.
fn per_key(
    policy: &Policy,
    overrides: &Overrides,
    request: &PageRequest,
) -> (BTreeMap<String, u64>, Option<String>) {
    let tenant = request.tenant.as_deref().unwrap_or(policy.tenant());
    let (page, cursor) = page(overrides, request, Some(tenant));
    let first = |(client, overrides): (Client, &[Arc<Override>])| {
        let newest = overrides.iter().max_by_key(|override_| override_.set_at)?;
        Some((client.id, newest.limits().first()?.count))
    };
    (page.into_iter().filter_map(first).collect(), cursor)
}

impl<'a> RuleView<'a> {
    fn new(rule: &'a Rule) -> Self {
        let condition = |condition: &'a policy::Condition| Condition {
            fact: condition.name(),
            any_of: condition.alternatives().iter().map(AsRef::as_ref).collect(),
        };
        Self {
            name: rule.name(),
            conditions: rule.conditions().iter().map(condition).collect(),
            unless: rule.exclusions().iter().map(condition).collect(),
            per: rule.per().iter().map(FactName::as_str).collect(),
            unlimited: rule.is_unlimited(),
            limits: rule.limits().iter().map(LimitView::new).collect(),
            next: rule.next().iter().map(LimitView::new).collect(),
            mode: rule.mode().as_str(),
            cost: rule.cost(),
            continues: rule.continues(),
            missing: rule.missing().as_str(),
            on_store_loss: rule.on_store_loss().as_str(),
            distributed: rule.distributed().as_str(),
        }
    }
}

impl<'a> LimitView<'a> {
    fn new(limit: &'a Limit) -> Self {
        Self {
            name: limit.name(),
            unit: limit.unit().as_str(),
            algorithm: limit.algorithm().as_str(),
            numbers: LimitNumbers::of(limit),
        }
    }
}
