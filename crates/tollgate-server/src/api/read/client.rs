//! One client: its recent refusals, counters and overrides in every rule.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Key, rounding};

use crate::api::admin::{Counters, Keyed, ServerPolicy, mode};
use crate::error::ApiError;
use crate::node::NodeContext;
use crate::node::overrides::{CLIENT, Client};
use crate::node::report::{NodeStatus, RefusedKey, add_up_refused};
#[cfg(test)]
use crate::reference_tests::{names, overrides::PublicOverride};
use crate::wire::decision::LimitNumbers;
use crate::wire::override_view::OverrideResponse;

/// Maximum number of counters in a response.
const MAX_COUNTERS: usize = 500;

/// Response of `/api/clients/{id}`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Client"))]
pub(crate) struct ClientView<'a> {
    client: String,
    tenant: String,
    /// Refusals of the last five minutes, newest first.
    refusals: Vec<Refusal>,
    counters: Vec<Counter>,
    #[cfg_attr(test, schemars(with = "Vec<PublicOverride>"))]
    overrides: Vec<OverrideResponse<'a>>,
    /// Whether the refusals of all nodes and all counters were found. False while the store is unavailable.
    complete: bool,
}

/// Recent refusals of a client by one limit.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "ClientRefusal"))]
struct Refusal {
    /// The counted key: the values of the facts in `per`, joined with `:`.
    key: String,
    rule: String,
    /// The name of the limit.
    limit: String,
    /// The limit as in a policy, such as `10/min`; null if the policy no longer has it.
    limit_text: Option<String>,
    /// Lower bound of the number of refusals.
    count: u64,
    /// Time of the last refusal, in milliseconds since the Unix epoch.
    last_at: u64,
    /// Facts of a refused request; null if they were not recorded, as for inline limits.
    facts: Option<BTreeMap<String, String>>,
}

/// A counter of a client, with the limit that applies to the client.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "ClientUsage"))]
struct Counter {
    key: String,
    rule: String,
    /// The name of the limit.
    name: String,
    /// The limit as in a policy, such as `10/min`.
    limit_text: String,
    /// What the limit counts.
    #[cfg_attr(test, schemars(with = "names::LimitName"))]
    unit: String,
    #[cfg_attr(test, schemars(with = "names::Algorithm"))]
    algorithm: &'static str,
    #[cfg_attr(test, schemars(with = "names::Mode"))]
    mode: &'static str,
    /// Whether the limit is that of an override.
    overridden: bool,
    count: u64,
    remaining: u64,
    reset_after_ms: u64,
    /// The node that counts the key, if it is not counted in the shared store (distributed off or shadow).
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(flatten)]
    numbers: LimitNumbers,
}

/// Collects the refusals, counters and overrides of a client. Without the store, returns what this node knows.
pub(super) async fn client<T>(
    context: &NodeContext,
    client: &Client,
    encode: impl FnOnce(&ClientView<'_>) -> T,
) -> T {
    let active = context.limiter().active_policy();
    let is_wanted = |refused: &RefusedKey| is_of(refused, client);
    let mut refused = context.refused().find(is_wanted);
    let mut complete = true;
    match other_nodes(context).await {
        Ok(others) => refused.extend(others.into_iter().filter(is_wanted)),
        Err(_) => complete = false,
    }
    let counters = counters(context, &active, client).await;
    let (counters, has_all) = counters.unwrap_or_default();
    let id = (&*client.id, &*client.tenant);
    let overrides =
        OverrideResponse::all(id, active.overrides().get(&client.subject()), active.policy());
    encode(&ClientView {
        client: client.id.clone(),
        tenant: client.tenant.clone(),
        refusals: refusals(refused, active.policy()),
        counters,
        overrides: overrides.into_iter().map(OverrideResponse::without_reasons).collect(),
        complete: complete && has_all,
    })
}

/// Returns whether a refused key has this value, or a request of this client was refused.
fn is_of(refused: &RefusedKey, client: &Client) -> bool {
    let fact = refused.facts.as_ref().and_then(|facts| facts.get(CLIENT));
    refused.tenant == client.tenant
        && (refused.key == client.id || fact.is_some_and(|fact| *fact == client.id))
}

/// Returns the most refused keys of the other nodes.
async fn other_nodes(context: &NodeContext) -> Result<Vec<RefusedKey>, ApiError> {
    let Some(store) = context.backend().fallback() else { return Ok(Vec::new()) };
    store.ensure_available().map_err(|error| ApiError::from(&error))?;
    let directory = store.store().directory();
    let nodes = directory.nodes().await.map_err(|error| ApiError::from(&error))?;
    let ids = nodes.iter().map(|node| &*node.id).filter(|id| *id != context.node_id());
    let states = directory.node_states(&ids.collect::<Vec<_>>()).await;
    let states = states.map_err(|error| ApiError::from(&error))?;
    let statuses = states.into_iter().flatten();
    let parsed = statuses.filter_map(|text| serde_json::from_str::<NodeStatus>(&text).ok());
    Ok(parsed.flat_map(|status| status.refused).collect())
}

fn refusals(refused: Vec<RefusedKey>, policy: &Policy) -> Vec<Refusal> {
    let mut all = add_up_refused(refused);
    all.sort_by_key(|refused| Reverse(refused.last_at));
    let with_text = |refused: RefusedKey| Refusal {
        limit_text: refused.limit_text(policy),
        key: refused.key,
        rule: refused.rule,
        limit: refused.limit,
        count: refused.count,
        last_at: refused.last_at,
        facts: refused.facts,
    };
    all.into_iter().map(with_text).collect()
}

/// Returns the counters of a client, and whether they are all.
async fn counters(
    context: &NodeContext,
    active: &ServerPolicy,
    client: &Client,
) -> Result<(Vec<Counter>, bool), ApiError> {
    let found = Counters::of_client(context, active, client, Keyed::ByAnyFact).await?;
    let mut counters = Vec::new();
    for (subject, limit) in found.all.iter().take(MAX_COUNTERS) {
        let counted_by = context.backend().counted_by(active.policy().rule(limit.rule()));
        let status = context.backend().stats_in(&Key::new(subject, limit), counted_by).await;
        let status = status.map_err(|error| ApiError::from(&error))?;
        let of_policy =
            active.policy().limit(limit.rule(), limit.name(), limit.algorithm()) == Some(limit);
        let is_overridden = active.override_limits(subject, limit.rule()).is_some() && !of_policy;
        counters.push(Counter {
            key: subject.key().into_owned(),
            rule: limit.rule().to_owned(),
            name: limit.name().to_owned(),
            limit_text: limit.to_string(),
            unit: limit.unit().to_string(),
            algorithm: limit.algorithm().as_str(),
            mode: mode(active, limit),
            overridden: is_overridden,
            count: status.count(),
            remaining: status.remaining(),
            reset_after_ms: rounding::millis(status.reset_after()),
            node: counted_by.node(context.node_id()),
            numbers: LimitNumbers::of(limit),
        });
    }
    Ok((counters, found.is_complete && found.all.len() <= MAX_COUNTERS))
}
