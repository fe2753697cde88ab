//! Why a question would be answered as it would be.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tollgate::policy::{RuleOutcome, TriedRule};
use tollgate::{Distributed, Explanation, Status, Take, rounding};

use super::decision::{LimitNumbers, decision_json, mode_name, verdict_name};
use super::override_view::ToldOverride;

/// The answer to /explain.
#[derive(Debug, Serialize)]
pub(crate) struct ExplainResponse<'o, 'p> {
    /// What /check would say now.
    answer: Option<Box<RawValue>>,
    /// Every rule that was tried, in order.
    rules: Rules<'o>,
    /// Every counter that would be taken from.
    takes: Takes<'o, 'p>,
    /// The client's own limits, where it has some.
    #[serde(rename = "override")]
    override_: Option<ToldOverride<'o>>,
}

impl<'o, 'p> ExplainResponse<'o, 'p> {
    /// With how much the shared store has to say at most.
    pub(crate) fn new(
        explained: &Explanation<'o, 'p>,
        at_most: Distributed,
        override_: Option<ToldOverride<'o>>,
    ) -> Self {
        let answer = String::from_utf8(decision_json(explained.outcome)).ok();
        let answer = answer.and_then(|text| RawValue::from_string(text).ok());
        Self { answer, rules: Rules(explained.tried), takes: Takes(*explained, at_most), override_ }
    }
}

#[derive(Debug)]
struct Rules<'a>(&'a [TriedRule]);

#[derive(Debug, Serialize)]
struct Rule<'a> {
    rule: &'a str,
    matched: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

impl Serialize for Rules<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tried| {
            let matched = tried.outcome == RuleOutcome::Matched;
            let because = (!matched).then(|| tried.outcome.to_string());
            Rule { rule: &tried.rule, matched, because }
        }))
    }
}

#[derive(Debug)]
struct Takes<'o, 'p>(Explanation<'o, 'p>, Distributed);

#[derive(Debug, Serialize)]
struct TakeView<'a> {
    key: String,
    rule: &'a str,
    limit: &'a str,
    algorithm: &'static str,
    numbers: LimitNumbers,
    mode: &'static str,
    cost: u64,
    verdict: &'static str,
    retry_after_ms: Option<u64>,
    before: Figures,
    after: Figures,
    /// How much the shared store has to say of it.
    distributed: &'static str,
    /// What that would say, where it is only tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Beside>,
}

#[derive(Debug, Serialize)]
struct Beside {
    verdict: &'static str,
    retry_after_ms: Option<u64>,
    count: u64,
    remaining: u64,
}

#[derive(Debug, Serialize)]
struct Figures {
    count: u64,
    remaining: u64,
}

impl Serialize for Takes<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Explanation { now, outcome, .. } = self.0;
        let figures = now.statuses().iter().zip(outcome.decision.statuses());
        let takes = outcome.plan.takes().iter().zip(figures);
        serializer.collect_seq(takes.map(|(take, (status, then))| {
            let beside = now.shadow_decision().and_then(|beside| same(beside.statuses(), status));
            let distributed = take.distribution().distributed.min(self.1).as_str();
            let beside = beside.map(Beside::of);
            TakeView { distributed, beside, ..TakeView::new(take, status, then) }
        }))
    }
}

impl<'a> TakeView<'a> {
    fn new(take: &'a Take<'_>, now: &Status<'_>, then: &Status<'_>) -> Self {
        let limit = take.key().limit();
        Self {
            key: take.key().to_string(),
            rule: limit.rule(),
            limit: limit.name(),
            algorithm: limit.algorithm().as_str(),
            numbers: LimitNumbers::of(limit),
            mode: mode_name(now.mode()),
            cost: take.cost(),
            verdict: verdict_name(now.verdict()),
            retry_after_ms: now.verdict().retry_after().map(rounding::millis),
            before: Figures::of(now),
            after: Figures::of(then),
            distributed: take.distribution().distributed.as_str(),
            beside: None,
        }
    }
}

/// The status of the same limit.
fn same<'s, 'p>(statuses: &'s [Status<'p>], wanted: &Status<'_>) -> Option<&'s Status<'p>> {
    statuses.iter().find(|status| status.limit().identity() == wanted.limit().identity())
}

impl Beside {
    fn of(status: &Status<'_>) -> Self {
        Self {
            verdict: verdict_name(status.verdict()),
            retry_after_ms: status.verdict().retry_after().map(rounding::millis),
            count: status.count(),
            remaining: status.remaining(),
        }
    }
}

impl Figures {
    fn of(status: &Status<'_>) -> Self {
        Self { count: status.count(), remaining: status.remaining() }
    }
}
