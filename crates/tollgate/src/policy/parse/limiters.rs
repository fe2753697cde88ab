//! Parses `limiters`.

use crate::algorithm::Algorithm;
use crate::limit::{INLINE_RULE, LeaseSize, Limit};
use crate::naming::valid_name;
use crate::policy::error::{FieldError, FieldErrors, PolicyErrorKind};
use crate::policy::limiters::{AcquireMode, NO_SLOTS, NamedLimits, REQUESTS_ONLY};
use crate::policy::node_ref::{Fields, NodeRef};

use super::condition::fact_text;
use super::limit::{self, Inherited};
use super::rate;

/// The fields of a limiter.
pub(super) const LIMITER: &[&str] = &["key", "limits", "algorithm", "mode", "longest_wait"];

const MODES: &[(&str, AcquireMode)] = &[
    ("blocking", AcquireMode::Blocking { longest_wait: None }),
    ("immediate", AcquireMode::Immediate),
];

/// Parses all limiters. Invalid ones are recorded in `errors` and left out.
pub(super) fn parse(fields: &Fields<'_>, errors: &mut FieldErrors) -> Vec<NamedLimits> {
    let entries = fields.parse("limiters", errors, NodeRef::entries).unwrap_or_default();
    entries.into_iter().filter_map(|entry| limiter(entry, errors)).collect()
}

/// Parses one limiter: a rate, or a map. The `defaults` of the file apply to rules only.
fn limiter(entry: NodeRef<'_>, errors: &mut FieldErrors) -> Option<NamedLimits> {
    let name = entry.name();
    let named = valid_name("limiter", name)
        .map_err(|error| entry.name_error(PolicyErrorKind::Value, error.to_string()));
    let is_named = errors.record(named).is_some();
    if !entry.is_map() {
        let limit = limit::parse(entry, inherited(Algorithm::SlidingWindow), errors)?;
        return is_named.then(|| errors.record(build(entry, name, name, vec![limit])))?;
    }
    let fields = entry.known_fields(LIMITER, errors)?;
    let algorithm = fields.parse("algorithm", errors, limit::rate_algorithm);
    let algorithm = algorithm.unwrap_or(Algorithm::SlidingWindow);
    let limits = fields.require("limits", errors).and_then(|list| limits(list, algorithm, errors));
    let key = fields.parse("key", errors, fact_text).unwrap_or(name);
    let mode = errors.record(mode(&fields));
    let limits = limits.filter(|_| is_named)?;
    Some(errors.record(build(entry, name, key, limits))?.with_mode(mode?))
}

/// Limiters inherit nothing from `defaults`, so leases are off unless a limit sets them.
fn inherited(algorithm: Algorithm) -> Inherited {
    Inherited { algorithm, lease: LeaseSize::Off }
}

fn build(
    entry: NodeRef<'_>,
    name: &str,
    key: &str,
    limits: Vec<Limit>,
) -> Result<NamedLimits, FieldError> {
    let built = NamedLimits::with_limits(key, limits).and_then(|limits| limits.named(name));
    built.map_err(|error| entry.limit_error(&error))
}

fn limits(list: NodeRef<'_>, algorithm: Algorithm, errors: &mut FieldErrors) -> Option<Vec<Limit>> {
    let entries = errors.record(list.one_or_more_limits())?;
    if entries.is_empty() {
        return errors.record(Err(list.invalid("must have at least one limit")));
    }
    let limits = limit::live(list, inherited(algorithm), INLINE_RULE, errors)?;
    let problem = |limit: &Limit| match limit.algorithm().holds_slots() {
        true => Some(NO_SLOTS),
        false => (!limit.unit().is_requests()).then_some(REQUESTS_ONLY),
    };
    let mut problems = entries.iter().zip(&limits).map(|(entry, limit)| (entry, problem(limit)));
    match problems.find_map(|(entry, problem)| Some((entry, problem?))) {
        Some((entry, reason)) => errors.record(Err(entry.error(PolicyErrorKind::Limit, reason))),
        None => Some(limits),
    }
}

fn mode(fields: &Fields<'_>) -> Result<AcquireMode, FieldError> {
    let mode = fields.optional("mode", |entry| entry.word(MODES))?.unwrap_or_default();
    if mode == AcquireMode::Immediate {
        fields.forbid(&["longest_wait"], "is only valid with mode: blocking")?;
        return Ok(mode);
    }
    let longest_wait = fields.optional("longest_wait", |entry| {
        rate::duration_with_hint(entry.text()?).map_err(|reason| entry.invalid(reason))
    })?;
    Ok(AcquireMode::Blocking { longest_wait })
}
