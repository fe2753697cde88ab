//! Parses limits and lists of limits.

use std::num::NonZeroU32;

use crate::algorithm::{Algorithm, CalendarUnit, LimitField};
use crate::limit::{LeaseSize, Limit, LimitSpec, duplicate_name, unique_names};
use crate::plan::MAX_TAKES;
use crate::policy::error::{FieldError, FieldErrors, PolicyErrorKind};
use crate::policy::node_ref::{Fields, NodeRef};
use crate::unit::Unit;

use super::rate::{self, Period, Rate};

/// The fields of a limit.
pub(super) const LIMIT: &[&str] =
    &["rate", "unit", "burst", "name", "algorithm", "align", "tz", "concurrency", "ttl", "lease"];

/// The values that limits inherit from their rule and from `defaults`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inherited {
    pub(super) algorithm: Algorithm,
    pub(super) lease: LeaseSize,
}

/// The name prefix of trial limits, so that they never share a counter with live limits.
pub(in crate::policy) const TRIAL_PREFIX: &str = "next.";
/// The error for a live limit whose name starts with [`TRIAL_PREFIX`].
pub(in crate::policy) const TRIAL_NAME: &str =
    "names that start with \"next.\" are reserved for trial limits; choose another name";
/// The maximum length of a limit name, in bytes.
const MAX_NAME: usize = 64;

/// Parses the limits of a rule: at least one, with unique names.
pub(super) fn live(
    list: NodeRef<'_>,
    inherited: Inherited,
    rule: &str,
    errors: &mut FieldErrors,
) -> Option<Vec<Limit>> {
    let limits = parse_list(list, inherited, rule, errors)?;
    match limits.iter().position(|limit| limit.name().starts_with(TRIAL_PREFIX)) {
        None => Some(limits),
        Some(index) => errors.record(Err(name_node(list, index).invalid(TRIAL_NAME))),
    }
}

/// Parses trial limits and adds [`TRIAL_PREFIX`] to their names.
pub(super) fn trial(
    list: NodeRef<'_>,
    inherited: Inherited,
    rule: &str,
    errors: &mut FieldErrors,
) -> Option<Vec<Limit>> {
    let limits = parse_list(list, inherited, rule, errors)?;
    let prefixed = limits.into_iter().enumerate().map(|(index, limit)| {
        let name = format!("{TRIAL_PREFIX}{}", limit.name());
        if name.len() > MAX_NAME {
            let reason = "the name of a trial limit must have at most 59 characters";
            return Err(name_node(list, index).invalid(reason));
        }
        Ok(limit.with_default_name(name))
    });
    errors.record(prefixed.collect())
}

/// Parses a list of limits, or one limit. `None` if one of them is invalid.
fn parse_list(
    list: NodeRef<'_>,
    inherited: Inherited,
    rule: &str,
    errors: &mut FieldErrors,
) -> Option<Vec<Limit>> {
    let entries = errors.record(list.one_or_more_limits())?;
    if entries.is_empty() {
        let reason = "must have at least one limit (or use unlimited: true)";
        return errors.record(Err(list.invalid(reason)));
    }
    if entries.len() > MAX_TAKES {
        let reason = format!("must have at most {MAX_TAKES} limits, not {}", entries.len());
        return errors.record(Err(list.invalid(reason)));
    }
    let before = errors.count();
    let mut limits: Vec<Limit> = Vec::with_capacity(entries.len());
    for entry in entries {
        let Some(limit) = parse(entry, inherited, errors) else { continue };
        let is_same = |earlier: &Limit| earlier.is_named() && earlier.name() == limit.name();
        if limit.is_named() && limits.iter().any(is_same) {
            let node = entry.field("name").unwrap_or(entry);
            let reason = duplicate_name(limit.name());
            errors.record::<()>(Err(node.error(PolicyErrorKind::Duplicate, reason)));
        }
        limits
            .extend(errors.record(limit.in_rule(rule).map_err(|error| entry.limit_error(&error))));
    }
    if errors.count() > before {
        return None;
    }
    errors.record(unique_names(limits).map_err(|error| list.limit_error(&error)))
}

/// Returns the node of a limit's name, or of the limit if it has none.
pub(super) fn name_node(list: NodeRef<'_>, index: usize) -> NodeRef<'_> {
    let entries = list.one_or_more_limits().unwrap_or_default();
    let entry = entries.get(index).copied().unwrap_or(list);
    entry.field("name").unwrap_or(entry)
}

/// Parses the name of an algorithm of rates.
pub(super) fn rate_algorithm(name: NodeRef<'_>) -> Result<Algorithm, FieldError> {
    name.algorithm(|algorithm| algorithm.accepts(LimitField::Window))
}

/// Parses one limit: a rate, or a map. `None` if it is invalid; then the errors are recorded.
pub(super) fn parse(
    entry: NodeRef<'_>,
    inherited: Inherited,
    errors: &mut FieldErrors,
) -> Option<Limit> {
    if !entry.is_map() {
        let spec = LimitSpec { algorithm: Some(inherited.algorithm), ..LimitSpec::default() };
        let limit = with_rate(spec, entry).and_then(|spec| build(&spec, entry, entry));
        return errors.record(limit).map(|limit| limit.with_lease(inherited.lease));
    }
    let fields = entry.known_fields(LIMIT, errors)?;
    let before = errors.count();
    let (value, spec) = match (fields.get("rate"), fields.get("concurrency")) {
        (Some(rate), None) => {
            let mut spec = common_fields(&fields, errors);
            spec.algorithm = fields.parse("algorithm", errors, rate_algorithm);
            if spec.align.is_none() {
                spec.algorithm = spec.algorithm.or(Some(inherited.algorithm));
            }
            (rate, errors.record(with_rate(spec, rate))?)
        }
        (None, Some(count)) => {
            errors.record(
                fields.forbid(&["unit", "algorithm", "lease"], "is not valid with concurrency"),
            );
            let algorithm = Some(Algorithm::Concurrency);
            let spec = common_fields(&fields, errors);
            (count, LimitSpec { algorithm, count: errors.record(count.number(1)), ..spec })
        }
        (Some(_), Some(count)) => {
            let reason = "a limit must have either rate or concurrency, not both";
            return errors.record(Err(count.invalid(reason)));
        }
        (None, None) if fields.has_unknown() => return None,
        (None, None) => {
            let reason = "a limit must have rate or concurrency";
            return errors.record(Err(entry.error(PolicyErrorKind::MissingField, reason)));
        }
    };
    let lease = fields.parse("lease", errors, lease).unwrap_or(inherited.lease);
    if errors.count() > before {
        return None;
    }
    errors.record(build(&spec, entry, value)).map(|limit| limit.with_lease(lease))
}

/// Parses the size of leases: `auto`, `off` or an amount.
pub(super) fn lease(node: NodeRef<'_>) -> Result<LeaseSize, FieldError> {
    let invalid = || node.invalid("must be auto, off, or an amount from 1 to 4294967295");
    match node.text() {
        Ok("auto") => Ok(LeaseSize::Auto),
        Ok("off") => Ok(LeaseSize::Off),
        Ok(text) => {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let amount =
                text.parse::<NonZeroU32>().ok().filter(|_| is_number).ok_or_else(invalid)?;
            Ok(LeaseSize::Fixed(amount))
        }
        Err(_) => Err(invalid()),
    }
}

/// Parses the name of a unit.
fn unit(node: NodeRef<'_>) -> Result<Unit, FieldError> {
    Unit::new(node.text()?).map_err(|error| node.limit_error(&error))
}

/// Parses the fields that have the same names in a [`LimitSpec`].
fn common_fields(fields: &Fields<'_>, errors: &mut FieldErrors) -> LimitSpec {
    let text = |node: NodeRef<'_>| node.text().map(str::to_owned);
    let units = CalendarUnit::ALL.map(|unit| (unit.as_str(), unit));
    let duration = |node: NodeRef<'_>| {
        let invalid = |reason| node.error(PolicyErrorKind::Limit, reason);
        rate::duration_with_hint(node.text()?).map_err(invalid)
    };
    LimitSpec {
        burst: fields.parse("burst", errors, |node| node.number(1)),
        align: fields.parse("align", errors, |node| node.word(&units)),
        tz: fields.parse("tz", errors, text),
        ttl: fields.parse("ttl", errors, duration),
        unit: fields.parse("unit", errors, unit),
        name: fields.parse("name", errors, text),
        ..LimitSpec::default()
    }
}

/// Adds the count and the window of a rate. A calendar window has the period of its unit.
fn with_rate(spec: LimitSpec, node: NodeRef<'_>) -> Result<LimitSpec, FieldError> {
    let text = node.text().map_err(|_| node.invalid(rate::NOT_A_RATE))?;
    let rate = Rate::parse(text).map_err(|reason| node.error(PolicyErrorKind::Limit, reason))?;
    let Rate::Count { count, period } = rate else {
        return Ok(LimitSpec { count: Some(0), ..spec });
    };
    let window = match (period, spec.align) {
        (period, Some(unit)) if period != Period::of(unit) => {
            let unit = unit.as_str();
            let reason = format!("must be a rate per {unit}, because the limit has align: {unit}");
            return Err(node.invalid(reason));
        }
        (_, Some(_)) => None,
        (Period::Duration(window), None) => Some(window),
        (Period::Calendar(_), None) => {
            let reason = "a rate per month or year needs align, as in \
                          { rate: 1000/month, align: month }";
            return Err(node.invalid(reason));
        }
    };
    Ok(LimitSpec { count: Some(count), window, ..spec })
}

/// Builds the limit of `entry`. Errors about its numbers are reported at `value`, the rate or number of slots.
fn build(spec: &LimitSpec, entry: NodeRef<'_>, value: NodeRef<'_>) -> Result<Limit, FieldError> {
    spec.build().map_err(|error| {
        let node = match error.field() {
            Some(LimitField::Count | LimitField::Window) | None => None,
            Some(field) => entry.field(field.as_str()),
        };
        let node = node.unwrap_or(value);
        match error.quota_error() {
            Some(quota_error) => node.limit_error(quota_error),
            None => node.name_error(PolicyErrorKind::Value, error.detail()),
        }
    })
}
