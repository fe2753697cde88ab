//! Decisions into answers.

use tollgate::{Algorithm, Limit, Mode, Outcome, Source, Status, Verdict, rounding};

use super::json::{Object, name};
use super::time::rfc3339;

/// The answer to a question, as JSON. About so long is one of a single limit.
const USUAL_LENGTH: usize = 640;

/// What a permit is called in an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PermitText<'a> {
    /// By its text, which gives it back.
    Full,
    /// By a name that someone remembers.
    Alias(&'a str),
}

/// The answer that an outcome makes.
pub(crate) fn decision_json(outcome: &Outcome<'_, '_>) -> Vec<u8> {
    decision_json_with(outcome, PermitText::Full)
}

/// The same, with a permit called by a name.
pub(crate) fn decision_json_with(outcome: &Outcome<'_, '_>, name: PermitText<'_>) -> Vec<u8> {
    let mut text = Vec::with_capacity(USUAL_LENGTH);
    write(&mut text, outcome, name);
    text
}

fn write(text: &mut Vec<u8>, outcome: &Outcome<'_, '_>, name: PermitText<'_>) {
    let decision = outcome.decision;
    let deciding = decision.deciding();
    let verdict = decision.verdict();
    let retry_after_ms = verdict.retry_after().map(rounding::millis);
    let mut object = Object::begin(text);
    object
        .boolean(name!("allowed"), verdict.is_allowed())
        .word(name!("verdict"), verdict_name(verdict))
        .word(name!("rule"), outcome.rule())
        .text(name!("key"), &outcome.key())
        .whole_or_null(name!("limit"), deciding.map(|status| status.limit().count()))
        .whole_if_any(name!("burst"), deciding.and_then(|status| burst(status.limit())))
        .whole_if_any(name!("share"), deciding.and_then(Status::share))
        .whole_or_null(name!("count"), deciding.map(Status::count))
        .whole_or_null(name!("remaining"), deciding.map(Status::remaining))
        .seconds_or_null(name!("retry_after"), retry_after_ms)
        .whole_or_null(name!("retry_after_ms"), retry_after_ms)
        .whole_or_null(name!("reset_after_ms"), deciding.map(|s| rounding::millis(s.reset_after())))
        .word(name!("source"), source_name(decision.source()))
        .boolean(name!("degraded"), decision.is_degraded());
    if let Some(permit) = &outcome.permit {
        match name {
            PermitText::Full => object.text(name!("permit"), &permit.to_string()),
            PermitText::Alias(name) => object.text(name!("permit"), name),
        };
        let expires_at = outcome.expires_at.map(rfc3339);
        object.text_if_any(name!("expires_at"), expires_at.as_deref());
    }
    object.list(name!("limits"), decision.statuses(), write_limit);
    object.end();
}

fn write_limit(text: &mut Vec<u8>, status: &Status<'_>) {
    let limit = status.limit();
    let numbers = LimitNumbers::of(limit);
    let mut object = Object::begin(text);
    object
        .word(name!("rule"), limit.rule())
        .word(name!("name"), limit.name())
        .word(name!("algorithm"), limit.algorithm().as_str())
        .whole(name!("limit"), numbers.limit)
        .whole_if_any(name!("burst"), numbers.burst)
        .whole_or_null(name!("window_ms"), numbers.window_ms)
        .whole_if_any(name!("ttl_ms"), numbers.ttl_ms)
        .whole_if_any(name!("share"), status.share())
        .whole(name!("count"), status.count())
        .whole(name!("remaining"), status.remaining())
        .whole(name!("reset_after_ms"), rounding::millis(status.reset_after()))
        .whole_or_null(
            name!("retry_after_ms"),
            status.verdict().retry_after().map(rounding::millis),
        )
        .word(name!("mode"), mode_name(status.mode()))
        .boolean(name!("allowed"), status.verdict().is_allowed());
    object.end();
}

/// A limit's own numbers, wherever they are shown.
#[derive(Debug, serde::Serialize)]
pub(crate) struct LimitNumbers {
    limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    window_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
}

impl LimitNumbers {
    pub(crate) fn of(limit: &Limit) -> Self {
        Self {
            limit: limit.count(),
            burst: burst(limit),
            window_ms: window_ms(limit),
            ttl_ms: limit.ttl().map(rounding::millis),
        }
    }
}

/// The window; none for what has none.
pub(crate) fn window_ms(limit: &Limit) -> Option<u64> {
    Some(limit.window()).filter(|window| !window.is_zero()).map(rounding::millis)
}

fn burst(limit: &Limit) -> Option<u64> {
    (limit.algorithm() == Algorithm::TokenBucket).then(|| limit.capacity())
}

pub(crate) const fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Deny { .. } => "deny",
        Verdict::Never => "never",
    }
}

const fn source_name(source: Source) -> &'static str {
    match source {
        Source::Cache => "cache",
        Source::Lease => "lease",
        Source::Local => "local",
        _ => "store",
    }
}

pub(crate) const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Shadow { .. } => "shadow",
        _ => "enforce",
    }
}
