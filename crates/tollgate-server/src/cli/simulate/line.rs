//! One line of the input of `tollgate simulate`.

use serde::Deserialize;
use tollgate::{Query, ReservationTerms, Timestamp};

use crate::error::ApiError;
use crate::wire::costs::CostsBody;
use crate::wire::limit::{Algorithm, LimitEntry};
use crate::wire::query::QueryBody;
use crate::wire::reservation::build_terms;
use crate::wire::scalar::{Integer, Pairs, Text, present};

/// One input line: a time, an operation, and a query, a permit or a reservation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line<'a> {
    #[serde(default, deserialize_with = "present")]
    at_ms: Option<Integer>,
    #[serde(default, deserialize_with = "present")]
    at_us: Option<Integer>,
    #[serde(default)]
    pub(super) op: Op,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(super) permit: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(super) reservation: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present")]
    ttl_ms: Option<Integer>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    key: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    facts: Option<Pairs<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) cost: Option<Integer>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(super) costs: Option<CostsBody<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    limits: Option<Vec<LimitEntry<'a>>>,
    #[serde(default, deserialize_with = "present")]
    limit: Option<Integer>,
    #[serde(default, deserialize_with = "present")]
    window_ms: Option<Integer>,
    #[serde(default, deserialize_with = "present")]
    algorithm: Option<Algorithm>,
    #[serde(default, deserialize_with = "present")]
    burst: Option<Integer>,
    #[serde(default, borrow, deserialize_with = "present")]
    name: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    unit: Option<Text<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Op {
    #[default]
    Check,
    Peek,
    Refund,
    Reset,
    Reserve,
    Settle,
    Release,
    Renew,
}

impl<'a> Line<'a> {
    pub(super) fn time(&self) -> Result<Option<Timestamp>, ApiError> {
        match (self.at_ms, self.at_us) {
            (Some(_), Some(_)) => {
                Err(ApiError::invalid("at_ms and at_us exclude each other; give one").at("at_ms"))
            }
            (None, None) => Ok(None),
            (Some(ms), None) => match ms.0.checked_mul(1000) {
                Some(us) if us <= Timestamp::MAX.as_micros() => {
                    Ok(Some(Timestamp::from_micros(us)))
                }
                _ => Err(ApiError::invalid("exceeds the maximum time of 2^53 µs").at("at_ms")),
            },
            (None, Some(us)) => Ok(Some(Timestamp::from_micros(us.0))),
        }
    }

    fn query_body(self) -> QueryBody<'a> {
        let Self {
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
            ..
        } = self;
        QueryBody {
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
        }
    }

    /// Returns the query of a line that names no permit and no reservation.
    pub(super) fn into_query(self) -> Result<Query<'a>, ApiError> {
        self.check_no_handle()?;
        let other = [("ttl_ms", self.ttl_ms.is_some()), ("id", self.id.is_some())];
        reject(&other, "is allowed with reserve only")?;
        self.query_body().into_query()
    }

    /// Returns the reservation to make.
    pub(super) fn into_reservation(self) -> Result<(Query<'a>, ReservationTerms), ApiError> {
        self.check_no_handle()?;
        let terms = build_terms(self.ttl_ms, self.id.as_ref())?;
        Ok((self.query_body().into_query()?, terms))
    }

    fn check_no_handle(&self) -> Result<(), ApiError> {
        reject(&[("permit", self.permit.is_some())], "is allowed with release and renew only")?;
        let detail = "is allowed with settle, release and renew only";
        reject(&[("reservation", self.reservation.is_some())], detail)
    }

    /// Returns an error if a line with a permit or a reservation also has fields of a query.
    pub(super) fn check_only_handle(&self) -> Result<(), ApiError> {
        let detail = "is not allowed with release and renew; give only a permit or a reservation";
        let costs = [
            ("tenant", self.tenant.is_some()),
            ("cost", self.cost.is_some()),
            ("costs", self.costs.is_some()),
        ];
        reject(&self.query_fields(), detail).and_then(|()| reject(&costs, detail))
    }

    /// Returns an error if a settlement has other fields of a query than costs and tenant.
    pub(super) fn check_settlement(&self) -> Result<(), ApiError> {
        reject(&[("permit", self.permit.is_some())], "is allowed with release and renew only")?;
        let detail = "is not allowed with settle; give a reservation, its costs and its tenant";
        reject(&self.query_fields(), detail)
    }

    /// The fields of a query, except for those of a settlement, and whether the line has them.
    fn query_fields(&self) -> [(&'static str, bool); 11] {
        [
            ("key", self.key.is_some()),
            ("facts", self.facts.is_some()),
            ("limits", self.limits.is_some()),
            ("limit", self.limit.is_some()),
            ("window_ms", self.window_ms.is_some()),
            ("algorithm", self.algorithm.is_some()),
            ("burst", self.burst.is_some()),
            ("name", self.name.is_some()),
            ("unit", self.unit.is_some()),
            ("ttl_ms", self.ttl_ms.is_some()),
            ("id", self.id.is_some()),
        ]
    }
}

/// Returns an error about the first field that is present.
fn reject(fields: &[(&'static str, bool)], detail: &str) -> Result<(), ApiError> {
    match fields.iter().find(|(_, is_present)| *is_present) {
        Some((field, _)) => Err(ApiError::invalid(detail).at(*field)),
        None => Ok(()),
    }
}
