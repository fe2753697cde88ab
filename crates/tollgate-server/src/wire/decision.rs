//! The JSON of a decision.

use tollgate::{Limit, LimitField, Mode, Outcome, Source, Status, Timestamp, Verdict, rounding};

use super::json::{Object, name};
use super::time::rfc3339;

/// Initial buffer size in bytes: about the length of a decision with one limit.
const TYPICAL_LENGTH: usize = 672;

/// The handle in the response of a decision, with which the caller releases what it holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HandleText<'a> {
    /// The full text of the permit, if slots are held. `/release` and `/renew` accept it.
    Permit,
    /// A short alias that the caller maps to the permit.
    PermitAlias(&'a str),
    /// A reservation, which has the slots too.
    Reservation(&'a ReservationText),
}

/// The fields of a response about its reservation.
#[derive(Debug)]
pub(crate) struct ReservationText {
    /// The token, or an alias that the caller maps to it.
    pub(crate) text: String,
    pub(crate) expires_at: Timestamp,
    /// Whether the id had been used before, so that nothing was taken.
    pub(crate) is_repeated: bool,
}

/// Returns the JSON of a decision.
pub(crate) fn decision_json(outcome: &Outcome<'_, '_>) -> Vec<u8> {
    decision_json_with(outcome, HandleText::Permit)
}

/// Returns the JSON of a decision with this handle.
pub(crate) fn decision_json_with(outcome: &Outcome<'_, '_>, handle: HandleText<'_>) -> Vec<u8> {
    let mut text = Vec::with_capacity(TYPICAL_LENGTH);
    write_decision(&mut text, outcome, handle);
    text
}

/// Appends the JSON of a decision with this handle.
pub(crate) fn write_decision(
    text: &mut Vec<u8>,
    outcome: &Outcome<'_, '_>,
    handle: HandleText<'_>,
) {
    text.reserve(TYPICAL_LENGTH);
    let decision = outcome.decision;
    let deciding = decision.deciding();
    let verdict = match handle {
        // A repeated id returns the first reservation, which was allowed, whatever the limits would decide now.
        HandleText::Reservation(_) => Verdict::Allow,
        HandleText::Permit | HandleText::PermitAlias(_) => decision.verdict(),
    };
    let retry_after_ms = verdict.retry_after().map(rounding::millis);
    let mut object = Object::begin(text);
    object
        .boolean(name!("allowed"), verdict.is_allowed())
        .word(name!("verdict"), verdict_name(verdict))
        .word(name!("rule"), outcome.rule())
        .word_or_null(name!("limit_name"), deciding.map(|status| status.limit().name()))
        .text(name!("key"), &outcome.key())
        .integer_or_null(name!("limit"), deciding.map(|status| status.limit().count()))
        .integer_if_some(name!("burst"), deciding.and_then(|status| burst(status.limit())))
        .integer_if_some(name!("share"), deciding.and_then(Status::share))
        .integer_or_null(name!("count"), deciding.map(Status::count))
        .integer_or_null(name!("remaining"), deciding.map(Status::remaining))
        .seconds_or_null(name!("retry_after"), retry_after_ms)
        .integer_or_null(name!("retry_after_ms"), retry_after_ms)
        .integer_or_null(
            name!("reset_after_ms"),
            deciding.map(|s| rounding::millis(s.reset_after())),
        )
        .word(name!("source"), source_name(decision.source()))
        .boolean(name!("degraded"), decision.is_degraded());
    write_handle(&mut object, outcome, handle);
    object.list(name!("limits"), decision.statuses(), write_limit);
    object.end();
}

fn write_handle(object: &mut Object<'_>, outcome: &Outcome<'_, '_>, handle: HandleText<'_>) {
    match (handle, &outcome.permit) {
        (HandleText::Reservation(reservation), _) => {
            object
                .word(name!("reservation"), &reservation.text)
                .word(name!("expires_at"), &rfc3339(reservation.expires_at))
                .boolean(name!("repeated"), reservation.is_repeated);
            return;
        }
        (_, None) => return,
        (HandleText::Permit, Some(permit)) => object.text(name!("permit"), &permit.to_string()),
        (HandleText::PermitAlias(alias), Some(_)) => object.text(name!("permit"), alias),
    };
    let expires_at = outcome.expires_at.map(rfc3339);
    object.text_if_some(name!("expires_at"), expires_at.as_deref());
}

fn write_limit(text: &mut Vec<u8>, status: &Status<'_>) {
    let limit = status.limit();
    let numbers = LimitNumbers::of(limit);
    let mut object = Object::begin(text);
    object
        .word(name!("rule"), limit.rule())
        .word(name!("name"), limit.name())
        .word(name!("unit"), limit.unit().as_str())
        .word(name!("algorithm"), limit.algorithm().as_str())
        .integer(name!("limit"), numbers.limit)
        .integer_if_some(name!("burst"), numbers.burst)
        .integer_or_null(name!("window_ms"), numbers.window_ms)
        .integer_if_some(name!("ttl_ms"), numbers.ttl_ms)
        .integer_if_some(name!("share"), status.share())
        .integer(name!("count"), status.count())
        .integer(name!("remaining"), status.remaining())
        .integer_if_some(name!("debt"), Some(status.debt()).filter(|debt| *debt > 0))
        .integer(name!("reset_after_ms"), rounding::millis(status.reset_after()))
        .integer_or_null(
            name!("retry_after_ms"),
            status.verdict().retry_after().map(rounding::millis),
        )
        .word(name!("mode"), mode_name(status.mode()))
        .boolean(name!("allowed"), status.verdict().is_allowed());
    object.end();
}

/// The configured numbers of a limit, as fields of a response.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Numbers"))]
pub(crate) struct LimitNumbers {
    limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    burst: Option<u64>,
    #[cfg_attr(test, schemars(range(min = 1)))]
    window_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    ttl_ms: Option<u64>,
}

impl LimitNumbers {
    /// The numbers with the burst of a token bucket as the limit, so that the remaining amount never exceeds it.
    pub(crate) fn with_capacity(limit: &Limit) -> Self {
        Self { limit: limit.capacity(), ..Self::of(limit) }
    }

    pub(crate) fn of(limit: &Limit) -> Self {
        Self {
            limit: limit.count(),
            burst: burst(limit),
            window_ms: window_ms(limit),
            ttl_ms: limit.ttl().map(rounding::millis),
        }
    }
}

/// Returns the window in milliseconds; `None` for limits without one (concurrency, calendar months, blocks).
pub(crate) fn window_ms(limit: &Limit) -> Option<u64> {
    Some(limit.window()).filter(|window| !window.is_zero()).map(rounding::millis)
}

fn burst(limit: &Limit) -> Option<u64> {
    limit.letter().has(LimitField::Burst).then(|| limit.capacity())
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
