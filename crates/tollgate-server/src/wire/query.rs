//! Bodies into questions.

use std::borrow::Cow;

use serde::Deserialize;
use tollgate::{Facts, Inline, Query, Request};

use super::limit::LimitBody;
use super::parse::parse;
use super::scalar::{Object, Pairs, Text, Whole, present};
use crate::error::ApiError;

/// The body of /check, /peek, /refund and /explain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryBody<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) key: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) facts: Option<Pairs<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) tenant: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) cost: Option<Whole>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) limits: Option<Vec<Object<LimitBody<'a>>>>,
}

/// Reads a body whole: nothing is decided unless all of it is right.
pub(crate) fn read(body: &[u8]) -> Result<Query<'_>, ApiError> {
    parse::<QueryBody<'_>>(body)?.into_query()
}

impl<'a> QueryBody<'a> {
    pub(crate) fn into_query(self) -> Result<Query<'a>, ApiError> {
        let cost = self.cost.map_or(1, |cost| cost.0);
        let facts = gather(self.key, self.facts, self.tenant)?;
        match self.limits {
            None => Ok(Query::ByPolicy(Request::new(facts).with_cost(cost))),
            Some(limits) => Ok(Query::Inline(inline(&facts, &limits, cost)?)),
        }
    }
}

/// `{"key":K}` means `{"facts":{"client":K}}`.
fn gather<'a>(
    key: Option<Text<'a>>,
    given: Option<Pairs<'a>>,
    tenant: Option<Text<'a>>,
) -> Result<Facts<'a>, ApiError> {
    let mut facts = Facts::new();
    match (key, given) {
        (Some(key), None) => insert(&mut facts, Cow::Borrowed("client"), key)
            .map_err(|detail| ApiError::invalid(detail).at("key"))?,
        (None, Some(given)) if given.0.is_empty() => {
            return Err(ApiError::invalid("is empty; give at least one fact").at("facts"));
        }
        (None, Some(given)) => {
            for (name, value) in given.0 {
                let field = format!("facts.{}", shown(name.as_str()));
                insert(&mut facts, name.0, value)
                    .map_err(|detail| ApiError::invalid(detail).at(field))?;
            }
        }
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid("key and facts are both given; give one").at("key"));
        }
        (None, None) => {
            return Err(ApiError::invalid("key or facts is missing; give one").at("key"));
        }
    }
    if let Some(tenant) = tenant {
        insert(&mut facts, Cow::Borrowed("tenant"), tenant)
            .map_err(|detail| ApiError::invalid(detail).at("tenant"))?;
    }
    Ok(facts)
}

fn insert<'a>(facts: &mut Facts<'a>, name: Cow<'a, str>, value: Text<'a>) -> Result<(), String> {
    facts.insert(name, value.0).map_err(|error| error.reason().to_owned())
}

/// The beginning of a name that may be hostile.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

fn inline(
    facts: &Facts<'_>,
    limits: &[Object<LimitBody<'_>>],
    cost: u64,
) -> Result<Inline, ApiError> {
    let Some(client) = facts.get("client") else {
        return Err(ApiError::invalid("limits need a key or facts.client to count").at("limits"));
    };
    let build = |(index, limit): (usize, &Object<LimitBody<'_>>)| {
        limit.0.build().map_err(|error| error.under(&format!("limits[{index}]")))
    };
    let built = limits.iter().enumerate().map(build).collect::<Result<Vec<_>, _>>()?;
    let tenant = facts.get("tenant").unwrap_or_default();
    Inline::new(tenant, client, built, cost)
        .map_err(|error| ApiError::invalid(error.to_string()).at("limits"))
}
