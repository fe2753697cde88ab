//! Limits, as they are written in lists of them.

use std::time::Duration;

use crate::algorithm::CalendarUnit;
use crate::error::QuotaErrorKind;
use crate::limit::Limit;
use crate::limit::identity::Algorithm;
use crate::naming::unique_names;
use crate::plan::MAX_TAKES;
use crate::policy::cursor::{Cursor, Fields};
use crate::policy::error::{Flaw, PolicyErrorKind};
use crate::quota::Quota;

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

/// What names of trial limits begin with, so that their counts never mix with live ones.
pub(in crate::policy) const TRIAL: &str = "next.";
const MAX_NAME: usize = 64;
/// How long a slot is held if nobody says.
const DEFAULT_TTL: Duration = Duration::from_secs(60);

/// The limits of a rule: at least one, and no two of the same name.
pub(super) fn live(list: Cursor<'_>, algorithm: Algorithm, rule: &str) -> Result<Vec<Limit>, Flaw> {
    let limits = named_apart(list, algorithm, rule)?;
    match limits.iter().position(|limit| limit.name().starts_with(TRIAL)) {
        None => Ok(limits),
        Some(place) => {
            let reason = "names that begin with next. are those of trial limits";
            Err(name_of(list, place).wrong(reason))
        }
    }
}

/// Limits on trial, named apart from the live ones.
pub(super) fn trial(
    list: Cursor<'_>,
    algorithm: Algorithm,
    rule: &str,
) -> Result<Vec<Limit>, Flaw> {
    let limits = named_apart(list, algorithm, rule)?;
    let prefixed = limits.into_iter().enumerate().map(|(place, limit)| {
        let name = format!("{TRIAL}{}", limit.name());
        if name.len() > MAX_NAME {
            return Err(name_of(list, place).wrong("must be at most 59 characters in next"));
        }
        Ok(limit.with_default_name(name))
    });
    prefixed.collect()
}

fn named_apart(list: Cursor<'_>, algorithm: Algorithm, rule: &str) -> Result<Vec<Limit>, Flaw> {
    let entries = list.list()?;
    if entries.is_empty() {
        return Err(list.wrong("needs at least one limit (or write unlimited: true)"));
    }
    if entries.len() > MAX_TAKES {
        return Err(list.wrong(format!("may have at most {MAX_TAKES} limits")));
    }
    let mut limits: Vec<Limit> = Vec::with_capacity(entries.len());
    for (place, entry) in entries.into_iter().enumerate() {
        let limit = read(entry, algorithm)?;
        let is_same = |other: &Limit| other.is_named() && other.name() == limit.name();
        if limit.is_named() && limits.iter().any(is_same) {
            let reason = format!("limit name {:?} comes twice", limit.name());
            return Err(name_of(list, place).flaw(PolicyErrorKind::Duplicate, reason));
        }
        limits.push(limit.in_rule(rule).map_err(|error| entry.refused(&error))?);
    }
    unique_names(limits).map_err(|error| list.refused(&error))
}

/// Where the name of a limit stands, or the limit itself.
pub(super) fn name_of(list: Cursor<'_>, place: usize) -> Cursor<'_> {
    let entry = list.list().ok().and_then(|entries| entries.get(place).copied()).unwrap_or(list);
    entry.field("name").unwrap_or(entry)
}

/// One limit: a rate, or a map.
pub(super) fn read(entry: Cursor<'_>, inherited: Algorithm) -> Result<Limit, Flaw> {
    if !entry.is_map() {
        return of_rate(entry, inherited, None);
    }
    let fields = entry.fields(LIMIT)?;
    let limit = match (fields.get("rate"), fields.get("concurrency")) {
        (Some(rate), None) => rated(&fields, rate, inherited)?,
        (None, Some(count)) => in_flight(&fields, count)?,
        (Some(_), Some(count)) => return Err(count.wrong("a limit has a rate or this, not both")),
        (None, None) => fields.require("rate").and_then(|rate| of_rate(rate, inherited, None))?,
    };
    match fields.get("name") {
        Some(name) => limit.named(name.text()?).map_err(|error| name.refused(&error)),
        None => Ok(limit),
    }
}

fn rated(fields: &Fields<'_>, rate: Cursor<'_>, inherited: Algorithm) -> Result<Limit, Flaw> {
    fields.refuse(&["ttl"], "is for concurrency only")?;
    let own = fields.read("algorithm", |entry| entry.word(ALGORITHMS))?;
    if let Some(align) = fields.get("align") {
        fields.refuse(&["burst"], "is for token buckets only")?;
        if own.is_some_and(|own| own != Algorithm::FixedWindow) {
            fields.refuse(&["algorithm"], "must be fixed_window, since the limit is aligned")?;
        }
        return aligned(fields, rate, align);
    }
    fields.refuse(&["tz"], "needs align beside it")?;
    let algorithm = own.unwrap_or(inherited);
    if algorithm != Algorithm::TokenBucket {
        fields.refuse(&["burst"], "is for token buckets only")?;
    }
    of_rate(rate, algorithm, fields.get("burst"))
}

fn aligned(fields: &Fields<'_>, rate: Cursor<'_>, align: Cursor<'_>) -> Result<Limit, Flaw> {
    let unit = align.word(&CalendarUnit::ALL.map(|unit| (unit.as_str(), unit)))?;
    let zone = fields.get("tz");
    let zone_name = zone.map(Cursor::text).transpose()?.unwrap_or("UTC");
    match parsed(rate)? {
        Rate::Block => Ok(Limit::block()),
        Rate::Count { count, period } if period == Period::of(unit) => {
            Limit::calendar_window(count, unit, zone_name).map_err(|error| match error.kind() {
                QuotaErrorKind::TimeZone => zone.unwrap_or(align).refused(&error),
                _ => rate.refused(&error),
            })
        }
        Rate::Count { .. } => {
            Err(rate
                .wrong("must be per one of the unit it is aligned to, as in 10/min by the minute"))
        }
    }
}

fn of_rate(
    rate: Cursor<'_>,
    algorithm: Algorithm,
    burst: Option<Cursor<'_>>,
) -> Result<Limit, Flaw> {
    let (count, period) = match parsed(rate)? {
        Rate::Block => return Ok(Limit::block()),
        Rate::Count { count, period: Period::Length(period) } => (count, period),
        Rate::Count { .. } => {
            let reason = "months and years differ in length; align the limit to them, as in \
                          { rate: 1000/month, align: month }";
            return Err(rate.wrong(reason));
        }
    };
    let mut quota = Quota::try_new(count, period).map_err(|error| rate.refused(&error))?;
    if let Some(burst) = burst {
        let size = burst.number(1)?;
        quota = quota.try_burst(size).map_err(|error| burst.refused(&error))?;
    }
    let limit = match algorithm {
        Algorithm::TokenBucket => Limit::token_bucket(quota),
        Algorithm::SlidingCounter => Limit::sliding_counter(quota),
        Algorithm::FixedWindow => Limit::fixed_window(quota),
        _ => Limit::sliding_window(quota),
    };
    limit.map_err(|error| rate.refused(&error))
}

fn parsed(rate: Cursor<'_>) -> Result<Rate, Flaw> {
    Rate::parse(rate.text()?).map_err(|reason| rate.flaw(PolicyErrorKind::Limit, reason))
}

fn in_flight(fields: &Fields<'_>, count: Cursor<'_>) -> Result<Limit, Flaw> {
    fields.refuse(&["burst", "algorithm", "align", "tz"], "has no meaning beside concurrency")?;
    let ttl = fields.read("ttl", |entry| {
        rate::length(entry.text()?).map_err(|reason| entry.flaw(PolicyErrorKind::Limit, reason))
    })?;
    let held = Limit::concurrency(count.number(1)?, ttl.unwrap_or(DEFAULT_TTL));
    held.map_err(|error| match error.kind() {
        QuotaErrorKind::Period => fields.get("ttl").unwrap_or(count).refused(&error),
        _ => count.refused(&error),
    })
}
