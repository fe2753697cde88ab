//! Parses limits and lists of limits.

use std::time::Duration;

use crate::algorithm::CalendarUnit;
use crate::limit::{Algorithm, Limit, duplicate_name, unique_names};
use crate::plan::MAX_TAKES;
use crate::policy::error::{FieldError, PolicyErrorKind};
use crate::policy::node_ref::{Fields, NodeRef};
use crate::quota::{Quota, QuotaErrorKind};

use super::rate::{self, Period, Rate};

/// The fields of a limit.
pub(super) const LIMIT: &[&str] =
    &["rate", "burst", "name", "algorithm", "align", "tz", "concurrency", "ttl"];

pub(super) const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("sliding_window", Algorithm::SlidingWindow),
    ("token_bucket", Algorithm::TokenBucket),
    ("sliding_counter", Algorithm::SlidingCounter),
    ("fixed_window", Algorithm::FixedWindow),
];

/// The name prefix of trial limits, so that they never share a counter with live limits.
pub(in crate::policy) const TRIAL_PREFIX: &str = "next.";
/// The error for a live limit whose name starts with [`TRIAL_PREFIX`].
pub(in crate::policy) const TRIAL_NAME: &str =
    "names that start with \"next.\" are reserved for trial limits; choose another name";
/// The maximum length of a limit name, in bytes.
const MAX_NAME: usize = 64;
/// The `ttl` of a concurrency limit that does not set one.
const DEFAULT_TTL: Duration = Duration::from_secs(60);

/// Parses the limits of a rule: at least one, with unique names.
pub(super) fn live(
    list: NodeRef<'_>,
    algorithm: Algorithm,
    rule: &str,
) -> Result<Vec<Limit>, FieldError> {
    let limits = parse_list(list, algorithm, rule)?;
    match limits.iter().position(|limit| limit.name().starts_with(TRIAL_PREFIX)) {
        None => Ok(limits),
        Some(index) => Err(name_node(list, index).invalid(TRIAL_NAME)),
    }
}

/// Parses trial limits and adds [`TRIAL_PREFIX`] to their names.
pub(super) fn trial(
    list: NodeRef<'_>,
    algorithm: Algorithm,
    rule: &str,
) -> Result<Vec<Limit>, FieldError> {
    let limits = parse_list(list, algorithm, rule)?;
    let prefixed = limits.into_iter().enumerate().map(|(index, limit)| {
        let name = format!("{TRIAL_PREFIX}{}", limit.name());
        if name.len() > MAX_NAME {
            let reason = "the name of a trial limit must have at most 59 characters";
            return Err(name_node(list, index).invalid(reason));
        }
        Ok(limit.with_default_name(name))
    });
    prefixed.collect()
}

fn parse_list(
    list: NodeRef<'_>,
    algorithm: Algorithm,
    rule: &str,
) -> Result<Vec<Limit>, FieldError> {
    let entries = list.list()?;
    if entries.is_empty() {
        return Err(list.invalid("must have at least one limit (or use unlimited: true)"));
    }
    if entries.len() > MAX_TAKES {
        let reason = format!("must have at most {MAX_TAKES} limits, not {}", entries.len());
        return Err(list.invalid(reason));
    }
    let mut limits: Vec<Limit> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let limit = parse(entry, algorithm)?;
        let is_same = |earlier: &Limit| earlier.is_named() && earlier.name() == limit.name();
        if limit.is_named() && limits.iter().any(is_same) {
            let name_node = name_node(list, index);
            return Err(name_node.error(PolicyErrorKind::Duplicate, duplicate_name(limit.name())));
        }
        limits.push(limit.in_rule(rule).map_err(|error| entry.limit_error(&error))?);
    }
    unique_names(limits).map_err(|error| list.limit_error(&error))
}

/// Returns the node of a limit's name, or of the limit if it has none.
pub(super) fn name_node(list: NodeRef<'_>, index: usize) -> NodeRef<'_> {
    let entry = list.list().ok().and_then(|entries| entries.get(index).copied()).unwrap_or(list);
    entry.field("name").unwrap_or(entry)
}

/// Parses one limit: a rate, or a map.
pub(super) fn parse(entry: NodeRef<'_>, inherited: Algorithm) -> Result<Limit, FieldError> {
    if !entry.is_map() {
        return limit_of_rate(entry, inherited, None);
    }
    let fields = entry.fields(LIMIT)?;
    let limit = match (fields.get("rate"), fields.get("concurrency")) {
        (Some(rate), None) => rate_limit(&fields, rate, inherited)?,
        (None, Some(count)) => concurrency_limit(&fields, count)?,
        (Some(_), Some(count)) => {
            return Err(count.invalid("a limit must have either rate or concurrency, not both"));
        }
        (None, None) => {
            let reason = "a limit must have rate or concurrency";
            return Err(entry.error(PolicyErrorKind::MissingField, reason));
        }
    };
    match fields.get("name") {
        Some(name) => limit.named(name.text()?).map_err(|error| name.limit_error(&error)),
        None => Ok(limit),
    }
}

fn rate_limit(
    fields: &Fields<'_>,
    rate: NodeRef<'_>,
    inherited: Algorithm,
) -> Result<Limit, FieldError> {
    fields.forbid(&["ttl"], "is only valid with concurrency")?;
    let algorithm = fields.optional("algorithm", |entry| entry.word(ALGORITHMS))?;
    if let Some(align) = fields.get("align") {
        fields.forbid(&["burst"], BURST_WITHOUT_BUCKET)?;
        if algorithm.is_some_and(|algorithm| algorithm != Algorithm::FixedWindow) {
            fields.forbid(&["algorithm"], "must be fixed_window, because align is set")?;
        }
        return aligned_limit(fields, rate, align);
    }
    fields.forbid(&["tz"], "is only valid with align")?;
    let algorithm = algorithm.unwrap_or(inherited);
    if algorithm != Algorithm::TokenBucket {
        fields.forbid(&["burst"], BURST_WITHOUT_BUCKET)?;
    }
    limit_of_rate(rate, algorithm, fields.get("burst"))
}

/// The error for `burst` in a limit that is not a token bucket.
const BURST_WITHOUT_BUCKET: &str = "is only valid with algorithm: token_bucket";

fn aligned_limit(
    fields: &Fields<'_>,
    rate: NodeRef<'_>,
    align: NodeRef<'_>,
) -> Result<Limit, FieldError> {
    let unit = align.word(&CalendarUnit::ALL.map(|unit| (unit.as_str(), unit)))?;
    let zone = fields.get("tz");
    let zone_name = zone.map(NodeRef::text).transpose()?.unwrap_or("UTC");
    match parse_rate(rate)? {
        Rate::Block => Ok(Limit::block()),
        Rate::Count { count, period } if period == Period::of(unit) => {
            Limit::calendar_window(count, unit, zone_name).map_err(|error| match error.kind() {
                QuotaErrorKind::TimeZone => zone.unwrap_or(align).limit_error(&error),
                _ => rate.limit_error(&error),
            })
        }
        Rate::Count { .. } => {
            let unit = unit.as_str();
            let reason = format!("must be a rate per {unit}, because the limit has align: {unit}");
            Err(rate.invalid(reason))
        }
    }
}

fn limit_of_rate(
    rate: NodeRef<'_>,
    algorithm: Algorithm,
    burst: Option<NodeRef<'_>>,
) -> Result<Limit, FieldError> {
    let (count, period) = match parse_rate(rate)? {
        Rate::Block => return Ok(Limit::block()),
        Rate::Count { count, period: Period::Duration(period) } => (count, period),
        Rate::Count { .. } => {
            let reason = "a rate per month or year needs align, as in \
                          { rate: 1000/month, align: month }";
            return Err(rate.invalid(reason));
        }
    };
    let mut quota = Quota::try_new(count, period).map_err(|error| rate.limit_error(&error))?;
    if let Some(burst) = burst {
        let size = burst.number(1)?;
        quota = quota.try_burst(size).map_err(|error| burst.limit_error(&error))?;
    }
    let limit = match algorithm {
        Algorithm::TokenBucket => Limit::token_bucket(quota),
        Algorithm::SlidingCounter => Limit::sliding_counter(quota),
        Algorithm::FixedWindow => Limit::fixed_window(quota),
        _ => Limit::sliding_window(quota),
    };
    limit.map_err(|error| rate.limit_error(&error))
}

fn parse_rate(rate: NodeRef<'_>) -> Result<Rate, FieldError> {
    let text = rate.text().map_err(|_| rate.invalid(rate::NOT_A_RATE))?;
    Rate::parse(text).map_err(|reason| rate.error(PolicyErrorKind::Limit, reason))
}

fn concurrency_limit(fields: &Fields<'_>, count: NodeRef<'_>) -> Result<Limit, FieldError> {
    fields.forbid(&["burst", "algorithm", "align", "tz"], "is not valid with concurrency")?;
    let ttl = fields.optional("ttl", |entry| {
        rate::duration(entry.text()?).map_err(|reason| entry.error(PolicyErrorKind::Limit, reason))
    })?;
    let limit = Limit::concurrency(count.number(1)?, ttl.unwrap_or(DEFAULT_TTL));
    limit.map_err(|error| match error.kind() {
        QuotaErrorKind::Period => fields.get("ttl").unwrap_or(count).limit_error(&error),
        _ => count.limit_error(&error),
    })
}
