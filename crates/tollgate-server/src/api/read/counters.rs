//! Listings of counters and of blocked keys.

use serde::Serialize;
use tollgate::policy::{Policy, Rule, RuleMode};
use tollgate::{ActivePolicy, Decision, Key, Limit, Plan, Status, StoreError, Take, rounding};

use super::chunks::try_join_chunks;
use super::scan::{FoundKey, PageRequest, Scan};
use crate::error::ApiError;
use crate::node::NodeContext;
#[cfg(test)]
use crate::reference_tests::names;
use crate::store::{CountedBy, KeySelection};
use crate::wire::decision::LimitNumbers;
use crate::wire::time::rfc3339;

/// Response of `/api/counters`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Counters"))]
pub(crate) struct CountersPage {
    counters: Vec<Counter>,
    /// The cursor of the next page; null on the last page.
    cursor: Option<String>,
}

/// Response of `/api/blocks`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Blocks"))]
pub(crate) struct BlocksPage {
    blocked: Vec<Block>,
    /// The cursor of the next page; null on the last page. A page may be empty and still have a cursor.
    cursor: Option<String>,
}

/// A counter with stored state.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = crate::reference_tests::describe_capacity))]
struct Counter {
    #[serde(flatten)]
    key: CounterKey,
    /// What the limit counts.
    #[cfg_attr(test, schemars(with = "names::LimitName"))]
    unit: String,
    #[cfg_attr(test, schemars(with = "names::Algorithm"))]
    algorithm: &'static str,
    count: u64,
    remaining: u64,
    /// The part of the count that this node has leased and not spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    leased: Option<u64>,
    #[serde(flatten)]
    numbers: LimitNumbers,
}

/// A key that is refused now.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Block {
    #[serde(flatten)]
    key: CounterKey,
    /// The limit as in a policy, such as `10/min`.
    limit_text: String,
    /// What the limit counts.
    #[cfg_attr(test, schemars(with = "names::LimitName"))]
    unit: String,
    /// When a request that costs 1 of the unit passes again; null if it never does.
    #[cfg_attr(test, schemars(with = "Option<names::Time>"))]
    blocked_until: Option<String>,
    reason: String,
}

/// The key and limit of a counter.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CounterKey {
    key: String,
    tenant: String,
    rule: String,
    name: String,
    /// The node that counts the key, if it is not counted in the shared store (distributed off or shadow).
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
}

/// Returns a page of the counters with stored state.
pub(super) async fn counters(
    context: &NodeContext,
    request: &PageRequest,
) -> Result<CountersPage, ApiError> {
    let active = context.limiter().active_policy();
    let mut scan = Scan::begin(context, active.policy(), KeySelection::Shown, request);
    let mut counters = Vec::new();
    while let Some(page) = scan.step(counters.len()).await? {
        let found = page.keys.iter().filter_map(|listed| request.find(&active, listed));
        let calls = found.map(|found| counter(context, found, page.counted_by));
        let results = try_join_chunks(calls.collect()).await;
        counters.extend(results.map_err(|error| ApiError::from(&error))?);
    }
    Ok(CountersPage { counters, cursor: scan.cursor() })
}

/// Returns a page of the keys for which a request of cost 1 would be refused now.
pub(super) async fn blocks(
    context: &NodeContext,
    request: &PageRequest,
) -> Result<BlocksPage, ApiError> {
    let active = context.limiter().active_policy();
    let mut scan = Scan::begin(context, active.policy(), KeySelection::Deciding, request);
    let mut blocked = Vec::new();
    while let Some(page) = scan.step(blocked.len()).await? {
        let found = page.keys.iter().filter_map(|listed| request.find(&active, listed));
        let found = found.filter(|found| !is_removed(&active, found));
        let calls = found.map(|found| block(context, active.policy(), found, page.counted_by));
        let results = try_join_chunks(calls.collect()).await;
        blocked.extend(results.map_err(|error| ApiError::from(&error))?.into_iter().flatten());
    }
    Ok(BlocksPage { blocked, cursor: scan.cursor() })
}

/// Returns whether an override removes the limit for this client, so that its counter refuses nothing.
fn is_removed<H>(active: &ActivePolicy<H>, found: &FoundKey<'_>) -> bool {
    let limits = active.override_limits(&found.subject, found.limit.rule());
    limits.is_some_and(|limits| limits.iter().all(|limit| limit.name() != found.limit.name()))
}

async fn counter(
    context: &NodeContext,
    found: FoundKey<'_>,
    counted_by: CountedBy,
) -> Result<Counter, StoreError> {
    let key = Key::new(&found.subject, &found.limit);
    let status = context.backend().stats_in(&key, counted_by).await?;
    Ok(Counter {
        key: CounterKey::new(context, &found, counted_by),
        unit: found.limit.unit().to_string(),
        algorithm: found.limit.algorithm().as_str(),
        count: status.count(),
        remaining: status.remaining(),
        leased: Some(context.backend().leased(&key)).filter(|leased| *leased > 0),
        numbers: LimitNumbers::with_capacity(&found.limit),
    })
}

async fn block(
    context: &NodeContext,
    policy: &Policy,
    found: FoundKey<'_>,
    counted_by: CountedBy,
) -> Result<Option<Block>, StoreError> {
    let (listed, limit) = (found.listed, &found.limit);
    let rule = policy.rule(&listed.rule);
    let is_shadow =
        rule.is_some_and(|rule| rule.is_on_trial(&listed.limit) || rule.mode() == RuleMode::Shadow);
    if is_shadow {
        return Ok(None);
    }
    // The cost of a rule multiplies requests only.
    let is_multiplied = limit.unit().is_requests();
    let cost = rule.filter(|_| is_multiplied).map_or(1, Rule::cost);
    let Ok(plan) = Plan::new([Take::new(Key::new(&found.subject, limit), cost)]) else {
        return Ok(None);
    };
    let decision = context.backend().peek_in(&plan, counted_by).await?;
    if decision.is_allowed() {
        return Ok(None);
    }
    let blocked_until = decision.retry_after().map(|wait| rfc3339(decision.at() + wait));
    let reason = reason(&decision, limit, cost);
    let key = CounterKey::new(context, &found, counted_by);
    Ok(Some(Block {
        key,
        limit_text: limit.to_string(),
        unit: limit.unit().to_string(),
        blocked_until,
        reason,
    }))
}

fn reason(decision: &Decision<'_>, limit: &Limit, cost: u64) -> String {
    let (rule, name, capacity) = (limit.rule(), limit.name(), limit.capacity());
    let count = decision.deciding().map_or(0, Status::count);
    let retry = match decision.retry_after().map(rounding::millis) {
        Some(millis) => format!("retry in {millis} ms"),
        None => format!("cost {cost} exceeds the limit"),
    };
    let unit = match limit.unit() {
        unit if unit.is_requests() => String::new(),
        unit => format!(" {unit}"),
    };
    format!("rule {rule}, limit {name}: {count} of {capacity}{unit} used, {retry}")
}

impl CounterKey {
    fn new(context: &NodeContext, found: &FoundKey<'_>, counted_by: CountedBy) -> Self {
        Self {
            node: counted_by.node(context.node_id()),
            key: found.subject.key().into_owned(),
            tenant: found.tenant.clone(),
            rule: found.listed.rule.clone(),
            name: found.listed.limit.clone(),
        }
    }
}
