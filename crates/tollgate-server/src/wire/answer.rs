//! Decisions into answers.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use tollgate::{Algorithm, Decision, Limit, Mode, Outcome, Source, Status, Verdict, round_up};

use super::time::rfc3339;

/// The answer to one question.
#[derive(Debug, Serialize)]
pub(crate) struct Answer<'o, 'p> {
    allowed: bool,
    verdict: &'static str,
    rule: &'o str,
    key: Cow<'o, str>,
    #[serde(flatten)]
    deciding: Figures,
    retry_after: Option<f64>,
    retry_after_ms: Option<u64>,
    reset_after_ms: Option<u64>,
    source: &'static str,
    degraded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<Cow<'o, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    limits: Limits<'o, 'p>,
}

/// What is configured, used and left.
#[derive(Debug, Serialize)]
struct Figures {
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    count: Option<u64>,
    remaining: Option<u64>,
}

impl<'o, 'p> Answer<'o, 'p> {
    pub(crate) fn new(outcome: &'o Outcome<'_, 'p>) -> Self {
        let decision = outcome.decision;
        let deciding = decision.deciding();
        let verdict = decision.verdict();
        let retry_after_ms = verdict.retry_after().map(round_up::millis);
        let lease = outcome.lease.as_ref();
        Self {
            allowed: verdict.is_allowed(),
            verdict: name_of(verdict),
            rule: outcome.rule(),
            key: outcome.key(),
            deciding: Figures::of(deciding),
            retry_after: retry_after_ms.map(seconds),
            retry_after_ms,
            reset_after_ms: deciding.map(|status| round_up::millis(status.reset_after())),
            source: name_of_source(decision.source()),
            degraded: decision.is_degraded(),
            lease: lease.map(|lease| lease.to_string().into()),
            expires_at: outcome.expires_at.map(rfc3339),
            limits: Limits(decision),
        }
    }

    /// The same answer, with the lease called otherwise.
    pub(crate) fn with_lease_called(mut self, name: &'o str) -> Self {
        self.lease = self.lease.map(|_| name.into());
        self
    }
}

impl Figures {
    fn of(status: Option<&Status<'_>>) -> Self {
        Self {
            limit: status.map(|status| status.limit().count()),
            burst: status.and_then(|status| burst(status.limit())),
            count: status.map(Status::count),
            remaining: status.map(Status::remaining),
        }
    }
}

/// One entry per limit, in the plan's order.
#[derive(Debug)]
struct Limits<'o, 'p>(&'o Decision<'p>);

impl Serialize for Limits<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.statuses().iter().map(LimitAnswer::new))
    }
}

#[derive(Debug, Serialize)]
struct LimitAnswer<'a> {
    rule: &'a str,
    name: &'a str,
    algorithm: &'static str,
    #[serde(flatten)]
    numbers: LimitNumbers,
    count: u64,
    remaining: u64,
    reset_after_ms: u64,
    retry_after_ms: Option<u64>,
    mode: &'static str,
    allowed: bool,
}

impl<'a> LimitAnswer<'a> {
    fn new(status: &'a Status<'a>) -> Self {
        let limit = status.limit();
        Self {
            rule: limit.rule(),
            name: limit.name(),
            algorithm: limit.algorithm().as_str(),
            numbers: LimitNumbers::of(limit),
            count: status.count(),
            remaining: status.remaining(),
            reset_after_ms: round_up::millis(status.reset_after()),
            retry_after_ms: status.verdict().retry_after().map(round_up::millis),
            mode: name_of_mode(status.mode()),
            allowed: status.verdict().is_allowed(),
        }
    }
}

/// A limit's own numbers, wherever they are shown.
#[derive(Debug, Serialize)]
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
            ttl_ms: limit.ttl().map(round_up::millis),
        }
    }
}

/// The window; none for what has none.
pub(crate) fn window_ms(limit: &Limit) -> Option<u64> {
    Some(limit.window()).filter(|window| !window.is_zero()).map(round_up::millis)
}

fn burst(limit: &Limit) -> Option<u64> {
    (limit.algorithm() == Algorithm::TokenBucket).then(|| limit.capacity())
}

/// Milliseconds as seconds. Exact to the millisecond far beyond any wait.
#[expect(clippy::cast_precision_loss, reason = "waits are below 2^53 ms")]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

pub(crate) const fn name_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Deny { .. } => "deny",
        Verdict::Never => "never",
    }
}

const fn name_of_source(source: Source) -> &'static str {
    match source {
        Source::Cache => "cache",
        Source::Lease => "lease",
        Source::Local => "local",
        _ => "store",
    }
}

pub(crate) const fn name_of_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Shadow { .. } => "shadow",
        _ => "enforce",
    }
}
