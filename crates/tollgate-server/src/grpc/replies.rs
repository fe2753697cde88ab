//! Decisions as statuses of descriptors, and the response of all.

use std::cmp::Reverse;

use tollgate::policy::MatchedRule;
use tollgate::{FieldValue, HeaderStyle, Outcome, Status, Verdict};

use super::proto::{
    Code, DescriptorStatus, HeaderValue, RateLimit, RateLimitResponse, protobuf_duration,
};
use super::units::reported_unit;
use crate::error::ApiError;

/// The reply to one descriptor.
#[derive(Debug)]
pub(super) struct DescriptorReply {
    status: DescriptorStatus,
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
    For(std::time::Duration),
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
        let status = match reported(outcome) {
            Some(status) => limited(status, decision.is_allowed()),
            None => unlimited(outcome),
        };
        let headers = style.zip(decision.deciding()).map(|(style, deciding)| {
            let mut fields = Vec::new();
            style.write(decision, |name, value| fields.push((name, value)));
            Headers { rank: (Reverse(wait(decision.verdict())), deciding.remaining()), fields }
        });
        Ok(Self { status, headers })
    }
}

/// Returns the response for these replies, in order.
pub(super) fn response(replies: Vec<DescriptorReply>) -> RateLimitResponse {
    let is_over = |reply: &DescriptorReply| reply.status.code == Code::OverLimit as i32;
    let code = if replies.iter().any(is_over) { Code::OverLimit } else { Code::Ok };
    let (statuses, headers): (Vec<_>, Vec<_>) =
        replies.into_iter().map(|reply| (reply.status, reply.headers)).unzip();
    // `min_by_key` returns the first of equals.
    let headers = headers.into_iter().flatten().min_by_key(|headers| headers.rank);
    let header = |(name, value): (&str, FieldValue)| HeaderValue {
        key: name.to_owned(),
        value: value.to_string(),
    };
    RateLimitResponse {
        overall_code: code.into(),
        statuses,
        response_headers_to_add: headers
            .map(|headers| headers.fields.into_iter().map(header).collect())
            .unwrap_or_default(),
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

fn limited(status: &Status<'_>, is_allowed: bool) -> DescriptorStatus {
    let limit = status.limit();
    let (code, remaining) =
        if is_allowed { (Code::Ok, status.remaining()) } else { (Code::OverLimit, 0) };
    DescriptorStatus {
        code: code.into(),
        current_limit: Some(RateLimit {
            // As in headers, the burst of a token bucket, so that no more than the limit can remain.
            requests_per_unit: saturating(limit.capacity()),
            unit: reported_unit(limit).into(),
            name: format!("{}/{}", limit.rule(), limit.name()),
        }),
        limit_remaining: saturating(remaining),
        duration_until_reset: Some(protobuf_duration(status.reset_after())),
    }
}

/// The status of a descriptor without a limit. Only an unlimited rule has something remaining.
fn unlimited(outcome: &Outcome<'_, '_>) -> DescriptorStatus {
    let has_rule = !outcome.query.matched().is_empty();
    DescriptorStatus {
        code: Code::Ok.into(),
        current_limit: None,
        limit_remaining: if has_rule { u32::MAX } else { 0 },
        duration_until_reset: None,
    }
}

fn wait(verdict: Verdict) -> Option<Wait> {
    match (verdict.is_allowed(), verdict.retry_after()) {
        (true, _) => None,
        (false, Some(wait)) => Some(Wait::For(wait)),
        (false, None) => Some(Wait::Never),
    }
}

fn saturating(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
