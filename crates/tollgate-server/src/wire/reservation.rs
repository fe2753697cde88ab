//! Bodies of `/reserve` and `/settle`.

use std::time::Duration;

use serde::Deserialize;
use tollgate::reservation::{FinalCosts, ReservationToken, TokenError};
use tollgate::{MAX_FACT_LENGTH, Query, ReservationTerms, ReserveOutcome};

use super::costs::{CostsBody, build_costs};
use super::decision::ReservationText;
use super::limit::{Algorithm, LimitEntry};
use super::query::QueryBody;
use super::scalar::{Integer, Pairs, Text, present};
use crate::error::ApiError;
#[cfg(test)]
use crate::reference_tests::names;

/// Body of `/reserve`: a query, a time to live and an id.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReserveBody<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) key: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) facts: Option<Pairs<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) tenant: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) cost: Option<Integer>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) costs: Option<CostsBody<'a>>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) ttl_ms: Option<Integer>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) id: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) limits: Option<Vec<LimitEntry<'a>>>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) limit: Option<Integer>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) window_ms: Option<Integer>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) algorithm: Option<Algorithm>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) burst: Option<Integer>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) name: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(crate) unit: Option<Text<'a>>,
}

impl<'a> ReserveBody<'a> {
    pub(crate) fn into_parts(self) -> Result<(Query<'a>, ReservationTerms), ApiError> {
        let terms = build_terms(self.ttl_ms, self.id.as_ref())?;
        let Self { key, facts, tenant, cost, costs, .. } = self;
        let Self { limits, limit, window_ms, algorithm, burst, name, unit, .. } = self;
        let query = QueryBody {
            key,
            facts,
            tenant,
            cost,
            costs,
            limits,
            limit,
            window_ms,
            algorithm,
            burst,
            name,
            unit,
        };
        Ok((query.into_query()?, terms))
    }
}

/// Returns the terms of a reservation with the fields `ttl_ms` and `id`.
pub(crate) fn build_terms(
    ttl_ms: Option<Integer>,
    id: Option<&Text<'_>>,
) -> Result<ReservationTerms, ApiError> {
    let mut terms = ReservationTerms::default();
    if let Some(Integer(millis)) = ttl_ms {
        let set = terms.ttl(Duration::from_millis(millis));
        terms = set.map_err(|error| ApiError::from(&error))?;
    }
    match id {
        Some(id) => terms.id(id.as_str()).map_err(|error| ApiError::from(&error)),
        None => Ok(terms),
    }
}

/// Returns the reservation of an outcome for its response; `None` if the limits refuse.
pub(crate) fn reservation_text(reserved: &ReserveOutcome<'_, '_>) -> Option<ReservationText> {
    reserved.record.map(|record| ReservationText {
        text: record.token().to_string(),
        expires_at: record.expires_at(),
        is_repeated: reserved.is_repeated,
    })
}

/// Body of `/settle`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(
    test,
    schemars(extend("oneOf" = [{ "required": ["cost"] }, { "required": ["costs"] }]))
)]
pub(crate) struct SettleBody<'a> {
    /// The reservation of /reserve.
    #[serde(borrow)]
    #[cfg_attr(test, schemars(with = "names::ReservationText"))]
    reservation: Text<'a>,
    /// The number of requests that were used; 0 cancels the reservation, in every unit. Excludes costs.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::Count"))]
    cost: Option<Integer>,
    /// The amount of each unit that was used. A unit that is not named keeps its estimate.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::Costs"))]
    costs: Option<CostsBody<'a>>,
    /// The tenant of the reservation. If it is another one, the reservation is unknown.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::Fact"))]
    tenant: Option<Text<'a>>,
}

/// A settlement to make.
#[derive(Debug)]
pub(crate) struct Settlement<'a> {
    pub(crate) token: ReservationToken,
    pub(crate) finals: FinalCosts,
    tenant: Option<Text<'a>>,
}

impl Settlement<'_> {
    /// Returns the tenant to compare with that of the reservation.
    pub(crate) fn tenant(&self) -> Option<&[u8]> {
        self.tenant.as_ref().map(|tenant| tenant.as_str().as_bytes())
    }
}

impl<'a> SettleBody<'a> {
    pub(crate) fn into_settlement(self) -> Result<Settlement<'a>, ApiError> {
        let token = parse_token(self.reservation.as_str())?;
        let finals = build_finals(self.cost, self.costs.as_ref())?;
        let is_valid = |tenant: &Text<'_>| (1..=MAX_FACT_LENGTH).contains(&tenant.as_str().len());
        if !self.tenant.as_ref().is_none_or(is_valid) {
            let detail = format!("must have 1 to {MAX_FACT_LENGTH} bytes");
            return Err(ApiError::invalid(detail).at("tenant"));
        }
        Ok(Settlement { token, finals, tenant: self.tenant })
    }
}

/// Returns the final costs of a settlement with the fields `cost` and `costs`.
pub(crate) fn build_finals(
    cost: Option<Integer>,
    costs: Option<&CostsBody<'_>>,
) -> Result<FinalCosts, ApiError> {
    match (cost, costs) {
        (None, None) => {
            let detail = "is missing: send the amounts that were used, or `cost` 0 to cancel";
            Err(ApiError::invalid(detail).at("costs"))
        }
        // `"costs":{"requests":0}` is something else: it keeps the estimates of the other units.
        (Some(Integer(0)), None) => Ok(FinalCosts::cancelled()),
        (cost, costs) => build_costs(cost, costs).map(FinalCosts::of),
    }
}

/// Parses the text of a reservation.
pub(crate) fn parse_token(text: &str) -> Result<ReservationToken, ApiError> {
    let parsed = text.parse();
    parsed.map_err(|error: TokenError| ApiError::invalid(error.to_string()).at("reservation"))
}

/// The schema of a query, with the additional fields.
#[cfg(test)]
impl schemars::JsonSchema for ReserveBody<'_> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReserveBody".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let max = u64::try_from(tollgate::reservation::MAX_RESERVATION_TTL.as_millis()).unwrap();
        let mut schema = QueryBody::json_schema(generator);
        let properties = schema.get_mut("properties").and_then(|value| value.as_object_mut());
        properties.unwrap().extend([
            (
                "ttl_ms".to_owned(),
                serde_json::json!({
                    "description": "How long the reservation holds its slots, in milliseconds. It can be settled for one \
                                    window longer.",
                    "type": "integer", "minimum": 1, "maximum": max, "default": 60_000,
                }),
            ),
            (
                "id".to_owned(),
                serde_json::json!({
                    "description": "An id of the caller, at most 64 bytes. A second call with the same id, for the same \
                                    tenant and key or facts, returns the first reservation and takes nothing.",
                    "type": "string", "minLength": 1, "maxLength": 64,
                }),
            ),
        ]);
        schema
    }
}
