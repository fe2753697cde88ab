//! Request bodies into queries.

use serde::Deserialize;
use tollgate::{Costs, Facts, FactsError, Inline, InlineLimits, Limit, Query, Request};

use super::costs::{CostsBody, build_costs};
use super::limit::{Algorithm, LimitEntry, ShortLimit};
use super::parse::parse;
use super::scalar::{Integer, Pairs, Text, present};
use crate::error::ApiError;
#[cfg(test)]
use crate::reference_tests::names;

/// Send either key or facts. With inline limits (limits, or the short form with limit and `window_ms`), the policy is
/// not used.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(
    test,
    schemars(
        rename = "Query",
        extend(
            "oneOf" = [{ "required": ["key"] }, { "required": ["facts"] }],
            "dependentRequired" = {
                "limit": ["window_ms"],
                "window_ms": ["limit"],
                "algorithm": ["limit"],
                "burst": ["limit"],
                "name": ["limit"],
                "unit": ["limit"]
            },
            "not" = { "anyOf": [
                { "required": ["limit", "limits"] },
                { "required": ["cost", "costs"] }
            ] }
        )
    )
)]
pub(crate) struct QueryBody<'a> {
    /// The key to count; short for facts.client.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::Fact"))]
    pub(crate) key: Option<Text<'a>>,
    /// Properties of the request: client, user, `api_key`, tier, ip, method, path, host, tenant, header:NAME, or any other
    /// name.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::Facts"))]
    pub(crate) facts: Option<Pairs<'a>>,
    /// The tenant of the request.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::Fact"))]
    pub(crate) tenant: Option<Text<'a>>,
    /// The number of requests to take; 0 is a peek. Short for costs with the unit requests; excludes costs.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::Count", extend("default" = 1)))]
    pub(crate) cost: Option<Integer>,
    /// The amount to take of each unit, such as requests or tokens. Each limit takes the amount of its unit; a unit that
    /// is not named costs 0.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::Costs"))]
    pub(crate) costs: Option<CostsBody<'a>>,
    /// Inline limits, which replace the policy: objects, or rates such as 10/min for token buckets. An unnamed limit is
    /// named after its window.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "Vec<LimitEntry<'a>>", length(min = 1, max = tollgate::MAX_TAKES)))]
    pub(crate) limits: Option<Vec<LimitEntry<'a>>>,
    /// Short form of one inline limit: the count per window. Requires `window_ms`; excludes limits.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::Count"))]
    pub(crate) limit: Option<Integer>,
    /// Short form: the window in milliseconds.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::WindowMs"))]
    pub(crate) window_ms: Option<Integer>,
    /// Short form: the algorithm.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::WindowAlgorithm", extend("default" = "token_bucket")))]
    pub(crate) algorithm: Option<Algorithm>,
    /// Short form: the capacity of a token bucket. Default: the limit.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::PositiveCount"))]
    pub(crate) burst: Option<Integer>,
    /// Short form: the name of the limit. Default: its window, such as 60s.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::LimitName"))]
    pub(crate) name: Option<Text<'a>>,
    /// Short form: the unit that the limit counts.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::LimitName", extend("default" = "requests")))]
    pub(crate) unit: Option<Text<'a>>,
}

/// Parses and validates a body.
pub(crate) fn read(body: &[u8]) -> Result<Query<'_>, ApiError> {
    parse::<QueryBody<'_>>(body)?.into_query()
}

impl<'a> QueryBody<'a> {
    pub(crate) fn into_query(self) -> Result<Query<'a>, ApiError> {
        let costs = build_costs(self.cost, self.costs.as_ref())?;
        let facts = build_facts(self.key, self.facts, self.tenant)?;
        let Self { limits, limit, window_ms, algorithm, burst, name, unit, .. } = self;
        if limits.is_some() && limit.is_some() {
            let detail = "`limit` and `limits` exclude each other; send one of them";
            return Err(ApiError::invalid(detail).at("limit"));
        }
        let short = ShortLimit { limit, window_ms, algorithm, burst, name, unit };
        let (field, limits) = match (short.build()?, limits) {
            (Some(limit), _) => ("limit", vec![limit]),
            (None, Some(limits)) => ("limits", build_limits(&limits)?),
            (None, None) => return Ok(Query::ByPolicy(Request::new(facts).with_costs(costs))),
        };
        Ok(Query::Inline(inline(&facts, limits, field, costs)?))
    }
}

/// Builds the facts of a request. `{"key":K}` is short for `{"facts":{"client":K}}`.
fn build_facts<'a>(
    key: Option<Text<'a>>,
    named: Option<Pairs<'a>>,
    tenant: Option<Text<'a>>,
) -> Result<Facts<'a>, ApiError> {
    let mut facts = Facts::new();
    match (key, named) {
        (Some(key), None) => {
            facts.insert("client", key.0).map_err(|error| fact_error(&error, "key"))?;
        }
        (None, Some(named)) if named.0.is_empty() => {
            return Err(ApiError::invalid("must contain at least one fact").at("facts"));
        }
        (None, Some(named)) => {
            for (name, value) in named.0 {
                let field = format!("facts.{}", truncated(name.as_str()));
                facts.insert(name.0, value.0).map_err(|error| fact_error(&error, &field))?;
            }
        }
        (Some(_), Some(_)) => {
            let detail = "`key` and `facts` exclude each other; send one of them";
            return Err(ApiError::invalid(detail).at("key"));
        }
        (None, None) => {
            return Err(ApiError::invalid("`key` or `facts` is required").at("key"));
        }
    }
    if let Some(tenant) = tenant {
        facts.insert("tenant", tenant.0).map_err(|error| fact_error(&error, "tenant"))?;
    }
    Ok(facts)
}

fn fact_error(error: &FactsError, field: &str) -> ApiError {
    ApiError::invalid(error.reason()).at(field)
}

/// Returns the first 64 characters of a name from the client, for an error message.
fn truncated(name: &str) -> String {
    name.chars().take(64).collect()
}

fn build_limits(limits: &[LimitEntry<'_>]) -> Result<Vec<Limit>, ApiError> {
    let build = |(index, limit): (usize, &LimitEntry<'_>)| {
        limit.build().map_err(|error| error.under(&format!("limits[{index}]")))
    };
    limits.iter().enumerate().map(build).collect()
}

/// Builds an inline query. `field` is the body's field that holds the limits.
fn inline(
    facts: &Facts<'_>,
    limits: Vec<Limit>,
    field: &str,
    costs: Costs,
) -> Result<Inline, ApiError> {
    let Some(client) = facts.get("client") else {
        let detail = "inline limits require `key` or `facts.client`";
        return Err(ApiError::invalid(detail).at(field));
    };
    let tenant = facts.get("tenant").unwrap_or_default();
    let limits = InlineLimits::new(limits)
        .map_err(|error| ApiError::invalid(error.to_string()).at(field))?;
    Ok(Inline::with_limits(tenant, client, limits, 1).with_costs(costs))
}
