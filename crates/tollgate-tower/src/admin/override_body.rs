//! The body of `PUT /clients/{id}/limits`.

use std::time::Duration;

use http::StatusCode;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use tollgate::{
    Algorithm, LimitField, LimitSpec, Override, OverrideLimit, RuleSelection, Timestamp, Unit,
};

use super::problem::Problem;

/// Largest number that all components represent exactly.
const MAX_NUMBER: u64 = (1 << 53) - 1;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OverrideBody {
    limits: Vec<LimitBody>,
    rule: Option<String>,
    #[serde(default)]
    all_rules: bool,
    /// Removes the rule's other limits for the client.
    #[serde(default)]
    only: bool,
    /// Also resets the client's usage of the rule.
    #[serde(default)]
    pub(super) fresh: bool,
    pub(super) reason: Option<String>,
    pub(super) author: Option<String>,
    expires_at: Option<jiff::Timestamp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitBody {
    limit: u64,
    window_ms: Option<u64>,
    burst: Option<u64>,
    algorithm: Option<AlgorithmName>,
    unit: Option<String>,
    name: Option<String>,
}

/// An algorithm by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AlgorithmName(Algorithm);

impl<'de> Deserialize<'de> for AlgorithmName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let algorithm = Algorithm::from_name(&name).map(Self);
        algorithm.ok_or_else(|| D::Error::unknown_variant(&name, Algorithm::NAMES))
    }
}

impl OverrideBody {
    pub(super) fn parse(body: &[u8]) -> Result<Self, Problem> {
        serde_json::from_slice(body).map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, format!("invalid body: {error}"))
        })
    }

    /// Builds the override, without its rules.
    pub(super) fn build(&self, now: Timestamp) -> Result<Override, Problem> {
        let limits = self.limits.iter().enumerate().map(|(index, limit)| limit.build(index));
        let built = Override::new(limits.collect::<Result<_, _>>()?)?;
        let built = if self.only { built.only() } else { built };
        let built = built.valid(now, self.expiry()?);
        if built.is_expired(now) {
            return Err(Problem::invalid("expires_at", "is in the past"));
        }
        Ok(built)
    }

    /// Returns the rules that the override is for.
    pub(super) fn selection(&self) -> Result<RuleSelection, Problem> {
        match (&self.rule, self.all_rules) {
            (Some(_), true) => Err(Problem::invalid("all_rules", "cannot be combined with `rule`")),
            (Some(rule), false) => Ok(RuleSelection::Named(rule.clone())),
            (None, true) => Ok(RuleSelection::All),
            (None, false) => Ok(RuleSelection::Unambiguous),
        }
    }

    fn expiry(&self) -> Result<Option<Timestamp>, Problem> {
        let Some(expiry) = self.expires_at else { return Ok(None) };
        let micros = u64::try_from(expiry.as_microsecond()).unwrap_or(0);
        if micros > MAX_NUMBER {
            return Err(Problem::invalid("expires_at", "must be before the year 2255"));
        }
        Ok(Some(Timestamp::from_micros(micros)))
    }
}

impl LimitBody {
    fn build(&self, index: usize) -> Result<OverrideLimit, Problem> {
        let unit = self.unit.as_deref().map(Unit::new).transpose().map_err(|error| {
            Problem::invalid(&format!("limits[{index}].unit"), error.to_string())
        })?;
        let spec = LimitSpec {
            algorithm: self.algorithm.map(|name| name.0),
            count: Some(self.limit),
            window: self.window_ms.map(Duration::from_millis),
            burst: self.burst,
            unit,
            name: self.name.clone(),
            ..LimitSpec::default()
        };
        OverrideLimit::from_spec(&spec).map_err(|error| match error.field() {
            Some(field) => {
                let field = format!("limits[{index}].{}", field_name(field));
                Problem::invalid(&field, error.detail())
            }
            None => Problem::invalid(&format!("limits[{index}]"), error.detail()),
        })
    }
}

/// Returns the name of a field in a body.
const fn field_name(field: LimitField) -> &'static str {
    match field {
        LimitField::Count => "limit",
        LimitField::Window => "window_ms",
        LimitField::Ttl => "ttl_ms",
        LimitField::Burst
        | LimitField::Align
        | LimitField::Tz
        | LimitField::Unit
        | LimitField::Name => field.as_str(),
    }
}
