//! Parses `limiters`.

use crate::algorithm::Algorithm;
use crate::limit::{INLINE_RULE, Limit};
use crate::naming::valid_name;
use crate::policy::error::{FieldError, FieldErrors, PolicyErrorKind};
use crate::policy::limiters::{AcquireMode, NO_SLOTS, NamedLimits};
use crate::policy::node_ref::{Fields, NodeRef};

use super::condition::fact_text;
use super::{limit, rate};

/// The fields of a limiter.
pub(super) const LIMITER: &[&str] = &["key", "limits", "algorithm", "mode", "longest_wait"];

const MODES: &[(&str, AcquireMode)] = &[
    ("blocking", AcquireMode::Blocking { longest_wait: None }),
    ("immediate", AcquireMode::Immediate),
];

/// Parses all limiters. Invalid ones are recorded in `errors` and left out.
pub(super) fn parse(fields: &Fields<'_>, errors: &mut FieldErrors) -> Vec<NamedLimits> {
    let entries = errors.record(fields.optional("limiters", NodeRef::entries)).flatten();
    let limiters =
        entries.unwrap_or_default().into_iter().filter_map(|entry| errors.record(limiter(entry)));
    limiters.collect()
}

/// Parses one limiter: a rate, or a map. The `defaults` of the file apply to rules only.
fn limiter(entry: NodeRef<'_>) -> Result<NamedLimits, FieldError> {
    let name = entry.name();
    valid_name("limiter", name)
        .map_err(|error| entry.name_error(PolicyErrorKind::Value, error.to_string()))?;
    if !entry.is_map() {
        let limit = limit::parse(entry, Algorithm::SlidingWindow)?;
        return build(entry, name, name, vec![limit]);
    }
    let fields = entry.fields(LIMITER)?;
    let algorithm =
        fields.optional("algorithm", limit::rate_algorithm)?.unwrap_or(Algorithm::SlidingWindow);
    let limits = limits(fields.required("limits")?, algorithm)?;
    let key = fields.optional("key", fact_text)?.unwrap_or(name);
    Ok(build(entry, name, key, limits)?.with_mode(mode(&fields)?))
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

fn limits(list: NodeRef<'_>, algorithm: Algorithm) -> Result<Vec<Limit>, FieldError> {
    let entries = list.list()?;
    if entries.is_empty() {
        return Err(list.invalid("must have at least one limit"));
    }
    let limits = limit::live(list, algorithm, INLINE_RULE)?;
    let has_slots = |limit: &Limit| limit.algorithm().holds_slots();
    match entries.iter().zip(&limits).find(|(_, limit)| has_slots(limit)) {
        Some((entry, _)) => Err(entry.error(PolicyErrorKind::Limit, NO_SLOTS)),
        None => Ok(limits),
    }
}

fn mode(fields: &Fields<'_>) -> Result<AcquireMode, FieldError> {
    let mode = fields.optional("mode", |entry| entry.word(MODES))?.unwrap_or_default();
    if mode == AcquireMode::Immediate {
        fields.forbid(&["longest_wait"], "is only valid with mode: blocking")?;
        return Ok(mode);
    }
    let longest_wait = fields.optional("longest_wait", |entry| {
        rate::duration(entry.text()?).map_err(|reason| entry.invalid(reason))
    })?;
    Ok(AcquireMode::Blocking { longest_wait })
}
