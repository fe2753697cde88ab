//! The named limiters of a file.

use crate::limit::identity::Algorithm;
use crate::limit::{INLINE_RULE, Limit};
use crate::naming::valid_name;
use crate::policy::cursor::{Cursor, Fields};
use crate::policy::error::{Flaw, Flaws, PolicyErrorKind};
use crate::policy::limiters::{AcquireMode, NO_SLOTS, NamedLimits};

use super::condition::short_text;
use super::{limit, rate};

/// The fields of a limiter.
pub(super) const LIMITER: &[&str] = &["key", "limits", "algorithm", "mode", "longest_wait"];

const MODES: &[(&str, AcquireMode)] = &[
    ("blocking", AcquireMode::Blocking { longest_wait: None }),
    ("immediate", AcquireMode::Immediate),
];

/// The limiters that can be read; the others leave flaws.
pub(super) fn read(fields: &Fields<'_>, flaws: &mut Flaws) -> Vec<NamedLimits> {
    let entries = flaws.keep(fields.read("limiters", Cursor::entries)).flatten();
    let limiters =
        entries.unwrap_or_default().into_iter().filter_map(|entry| flaws.keep(one(entry)));
    limiters.collect()
}

/// One limiter: a rate, or a map. What the file's defaults say is for its rules.
fn one(entry: Cursor<'_>) -> Result<NamedLimits, Flaw> {
    let name = entry.name();
    valid_name("limiter", name)
        .map_err(|error| entry.misnamed(PolicyErrorKind::Value, error.to_string()))?;
    if !entry.is_map() {
        let limit = limit::read(entry, Algorithm::SlidingWindow)?;
        return named(entry, name, name, vec![limit]);
    }
    let fields = entry.fields(LIMITER)?;
    let word = |entry: Cursor<'_>| entry.word(limit::ALGORITHMS);
    let algorithm = fields.read("algorithm", word)?.unwrap_or(Algorithm::SlidingWindow);
    let limits = limits(fields.require("limits")?, algorithm)?;
    let key = fields.read("key", short_text)?.unwrap_or(name);
    Ok(named(entry, name, key, limits)?.with_mode(mode(&fields)?))
}

fn named(
    entry: Cursor<'_>,
    name: &str,
    key: &str,
    limits: Vec<Limit>,
) -> Result<NamedLimits, Flaw> {
    let built = NamedLimits::with_limits(key, limits).and_then(|limits| limits.named(name));
    built.map_err(|error| entry.refused(&error))
}

fn limits(list: Cursor<'_>, algorithm: Algorithm) -> Result<Vec<Limit>, Flaw> {
    let entries = list.list()?;
    if entries.is_empty() {
        return Err(list.wrong("needs at least one limit"));
    }
    let limits = limit::live(list, algorithm, INLINE_RULE)?;
    let has_slots = |limit: &Limit| limit.algorithm() == Algorithm::Concurrency;
    match entries.iter().zip(&limits).find(|(_, limit)| has_slots(limit)) {
        Some((entry, _)) => Err(entry.flaw(PolicyErrorKind::Limit, NO_SLOTS)),
        None => Ok(limits),
    }
}

fn mode(fields: &Fields<'_>) -> Result<AcquireMode, Flaw> {
    let mode = fields.read("mode", |entry| entry.word(MODES))?.unwrap_or_default();
    if mode == AcquireMode::Immediate {
        fields.refuse(&["longest_wait"], "has no effect, since mode: immediate never waits")?;
        return Ok(mode);
    }
    let longest_wait = fields.read("longest_wait", |entry| {
        rate::length(entry.text()?).map_err(|reason| entry.wrong(reason))
    })?;
    Ok(AcquireMode::Blocking { longest_wait })
}
