//! Decisions as statuses of descriptors, and the response of all.

use std::cmp::Reverse;
use std::time::Duration;

use bytes::Bytes;
use tollgate::policy::MatchedRule;
use tollgate::{FieldValue, HeaderStyle, Outcome, Status, Verdict};

use super::message::body_of;
use super::proto::Code;
use super::protobuf::Encoder;
use super::units::reported_unit;
use crate::error::ApiError;

/// Expected length of a status and of the headers in bytes. Longer ones are valid, but need more memory.
const STATUS_CAPACITY: usize = 96;
const HEADERS_CAPACITY: usize = 128;

/// The reply to one descriptor.
#[derive(Debug)]
pub(super) struct DescriptorReply {
    is_over: bool,
    /// The field `statuses` of the response with this status.
    status: Encoder,
    /// Absent if no limit is enforced.
    headers: Option<Headers>,
}

/// The headers that describe a descriptor, and how they rank among those of the others.
#[derive(Debug)]
struct Headers {
    rank: Rank,
    fields: Vec<(&'static str, FieldValue)>,
}

/// The order of descriptors: a refusal comes first, the longest wait before others, then the least remaining.
type Rank = (Reverse<Option<Wait>>, u64);

/// The wait of a refusal; `Never` is longer than any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    For(Duration),
    Never,
}

impl DescriptorReply {
    /// Encodes an outcome. A refusal by `on_store_loss: deny` is an error.
    pub(super) fn of(
        outcome: &Outcome<'_, '_>,
        style: Option<HeaderStyle>,
    ) -> Result<Self, ApiError> {
        let decision = outcome.decision;
        if let Some(error) = ApiError::of_store_loss(outcome) {
            return Err(error);
        }
        let mut status = Encoder::with_capacity(STATUS_CAPACITY);
        let is_over = match reported(outcome) {
            Some(reported) => {
                let is_over = !decision.is_allowed();
                status.message(2, |status| write_limited(status, reported, is_over));
                is_over
            }
            None => {
                status.message(2, |status| write_unlimited(status, outcome));
                false
            }
        };
        let headers = style.zip(decision.deciding()).map(|(style, deciding)| {
            let mut fields = Vec::new();
            style.write(decision, |name, value| fields.push((name, value)));
            Headers { rank: (Reverse(wait(decision.verdict())), deciding.remaining()), fields }
        });
        Ok(Self { is_over, status, headers })
    }
}

/// Returns the body of the response for these replies, in order: a `RateLimitResponse`.
pub(super) fn response(replies: &[DescriptorReply]) -> Bytes {
    let statuses = || replies.iter().map(|reply| reply.status.as_bytes());
    let capacity = statuses().map(<[u8]>::len).sum::<usize>().saturating_add(HEADERS_CAPACITY);
    // `min_by_key` returns the first of equals.
    let all_headers = replies.iter().filter_map(|reply| reply.headers.as_ref());
    let headers = all_headers.min_by_key(|headers| headers.rank);
    body_of(capacity, |response| {
        response.number(1, number(code(replies.iter().any(|reply| reply.is_over))));
        statuses().for_each(|status| response.append(status));
        for (name, value) in headers.map_or(&[][..], |headers| &headers.fields) {
            response.message(3, |header| write_header(header, name, value));
        }
    })
}

/// Encodes a `HeaderValue`.
fn write_header(header: &mut Encoder, name: &str, value: &FieldValue) {
    header.text(1, &[name]);
    match value {
        FieldValue::Number(number) => header.text(2, &[itoa::Buffer::new().format(*number)]),
        FieldValue::Text(text) => header.text(2, &[text]),
    }
}

/// Returns the status to report: that of the deciding limit, else that of the shadow limit with the least remaining.
fn reported<'o, 'p>(outcome: &'o Outcome<'_, 'p>) -> Option<&'o Status<'p>> {
    let is_trial = |status: &Status<'_>| {
        let mut rules = outcome.query.matched().iter().map(MatchedRule::rule);
        let limit = status.limit();
        rules.any(|rule| rule.name() == limit.rule() && rule.is_on_trial(limit.name()))
    };
    outcome.decision.deciding().or_else(|| {
        let statuses = outcome.decision.statuses().iter();
        statuses.filter(|status| !is_trial(status)).min_by_key(|status| status.remaining())
    })
}

/// Encodes the `DescriptorStatus` of a limit.
fn write_limited(encoder: &mut Encoder, status: &Status<'_>, is_over: bool) {
    let limit = status.limit();
    let remaining = if is_over { 0 } else { status.remaining() };
    encoder.number(1, number(code(is_over)));
    encoder.message(2, |current_limit| {
        // As in headers, the burst of a token bucket, so that no more than the limit can remain.
        current_limit.number(1, clamped(limit.capacity()));
        current_limit.number(2, number(reported_unit(limit).into()));
        current_limit.text(3, &[limit.rule(), "/", limit.name()]);
    });
    encoder.number(3, clamped(remaining));
    encoder.message(4, |duration| write_duration(duration, status.reset_after()));
}

/// Encodes the `DescriptorStatus` of a descriptor without a limit. Only an unlimited rule has something remaining.
fn write_unlimited(encoder: &mut Encoder, outcome: &Outcome<'_, '_>) {
    let has_rule = !outcome.query.matched().is_empty();
    encoder.number(1, number(code(false)));
    encoder.number(3, if has_rule { u32::MAX.into() } else { 0 });
}

/// Encodes a `google.protobuf.Duration`. Times beyond its range are clamped.
fn write_duration(encoder: &mut Encoder, time: Duration) {
    encoder.number(1, time.as_secs().min(i64::MAX.unsigned_abs()));
    encoder.number(2, time.subsec_nanos().into());
}

fn code(is_over: bool) -> i32 {
    if is_over { Code::OverLimit.into() } else { Code::Ok.into() }
}

/// Returns an enum value, which is never negative, as a number.
fn number(value: i32) -> u64 {
    value.try_into().unwrap_or_default()
}

fn wait(verdict: Verdict) -> Option<Wait> {
    match (verdict.is_allowed(), verdict.retry_after()) {
        (true, _) => None,
        (false, Some(wait)) => Some(Wait::For(wait)),
        (false, None) => Some(Wait::Never),
    }
}

/// Returns a number as 32 bits.
fn clamped(number: u64) -> u64 {
    number.min(u32::MAX.into())
}
