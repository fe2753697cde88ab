//! The JSON of an explanation.

use std::iter;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tollgate::policy::{RuleOutcome, TriedRule};
use tollgate::{Distributed, Explanation, Status, Take, rounding};

use super::decision::{LimitNumbers, decision_json, mode_name, verdict_name};
#[cfg(test)]
use super::decision_schema::Decision;
use super::override_view::OverrideResponse;
#[cfg(test)]
use crate::reference_tests::{names, overrides::PublicOverride};

/// Response of `/explain`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Explanation"))]
pub(crate) struct ExplainResponse<'o, 'p> {
    /// The decision that /check would return now. Verdict, rule and counts are those after the take, times those before it.
    #[cfg_attr(test, schemars(with = "Decision"))]
    answer: Option<Box<RawValue>>,
    /// Every rule tried, in order.
    #[cfg_attr(test, schemars(with = "Vec<Rule<'o>>"))]
    rules: Rules<'o>,
    /// Every take of the plan.
    #[cfg_attr(test, schemars(with = "Vec<TakeView<'o>>"))]
    takes: Takes<'o, 'p>,
    /// The override that applies to the first matched rule that has one, or null.
    #[serde(rename = "override")]
    #[cfg_attr(test, schemars(with = "Option<PublicOverride>"))]
    override_: Option<OverrideResponse<'o>>,
    /// All overrides of the client, at most one per rule.
    #[cfg_attr(test, schemars(with = "Vec<PublicOverride>"))]
    overrides: Vec<OverrideResponse<'o>>,
}

impl<'o, 'p> ExplainResponse<'o, 'p> {
    /// Encodes an explanation. `max_distribution` caps the distribution of the rules.
    pub(crate) fn new(explanation: &Explanation<'o, 'p>, max_distribution: Distributed) -> Self {
        let answer = String::from_utf8(decision_json(explanation.outcome)).ok();
        let answer = answer.and_then(|text| RawValue::from_string(text).ok());
        Self {
            answer,
            rules: Rules(explanation.tried),
            takes: Takes { explanation: *explanation, max_distribution, leased: Vec::new() },
            override_: None,
            overrides: Vec::new(),
        }
    }

    /// Sets what this node has leased of each take.
    pub(crate) fn with_leased(mut self, leased: &[u64]) -> Self {
        self.takes.leased = leased.to_vec();
        self
    }

    /// Sets the override that applies, and all overrides of the client.
    pub(crate) fn with_overrides(
        self,
        applied: Option<OverrideResponse<'o>>,
        all: Vec<OverrideResponse<'o>>,
    ) -> Self {
        Self { override_: applied, overrides: all, ..self }
    }
}

#[derive(Debug)]
struct Rules<'a>(&'a [TriedRule]);

/// A rule that was tried.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "TriedRule"))]
struct Rule<'a> {
    rule: &'a str,
    matched: bool,
    /// Why the rule did not match: a condition that is not met.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
    /// The fact that the request lacks, if the rule did not match only because of missing facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'a str>,
}

/// Returns the fact whose absence is the reason of an outcome.
fn missing_fact(outcome: &RuleOutcome) -> Option<&str> {
    match outcome {
        RuleOutcome::Failed { condition: fact, found: None, .. }
        | RuleOutcome::MissingFact { fact } => Some(fact),
        _ => None,
    }
}

impl Serialize for Rules<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tried| {
            let matched = tried.outcome == RuleOutcome::Matched;
            let because = (!matched).then(|| tried.outcome.to_string());
            Rule { rule: &tried.rule, matched, because, missing: missing_fact(&tried.outcome) }
        }))
    }
}

/// The takes of an explanation.
#[derive(Debug)]
struct Takes<'o, 'p> {
    explanation: Explanation<'o, 'p>,
    max_distribution: Distributed,
    /// What this node has leased of each take; may be empty.
    leased: Vec<u64>,
}

/// A take of a limit, with its state before and after.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Take"))]
struct TakeView<'a> {
    /// The key of the take. The Redis key has a prefix, and a letter for the algorithm before the rule.
    key: String,
    rule: &'a str,
    limit: &'a str,
    /// What the limit counts.
    #[cfg_attr(test, schemars(with = "names::LimitName"))]
    unit: &'a str,
    #[cfg_attr(test, schemars(with = "names::Algorithm"))]
    algorithm: &'static str,
    numbers: LimitNumbers,
    #[cfg_attr(test, schemars(with = "names::Mode"))]
    mode: &'static str,
    /// The amount of the unit that the request takes.
    cost: u64,
    #[cfg_attr(test, schemars(with = "names::Verdict"))]
    verdict: &'static str,
    retry_after_ms: Option<u64>,
    before: Figures,
    after: Figures,
    /// The part of the count that this node has leased and not spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    leased: Option<u64>,
    /// The distribution of the rule, capped by --distributed.
    #[cfg_attr(test, schemars(with = "names::Distributed"))]
    distributed: &'static str,
    /// The status in the shared store, if distributed is shadow.
    #[serde(rename = "shared_store", skip_serializing_if = "Option::is_none")]
    shadow: Option<ShadowStatus>,
}

/// The state in the shared store.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "SharedStoreStatus"))]
struct ShadowStatus {
    #[cfg_attr(test, schemars(with = "names::Verdict"))]
    verdict: &'static str,
    retry_after_ms: Option<u64>,
    count: u64,
    remaining: u64,
}

/// The amount used and the amount left.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Figures {
    count: u64,
    remaining: u64,
    /// The amount used beyond the limit, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    debt: Option<u64>,
}

impl Serialize for Takes<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Explanation { now, outcome, .. } = self.explanation;
        let statuses = now.statuses().iter().zip(outcome.decision.statuses());
        let leased = self.leased.iter().map(|leased| Some(*leased).filter(|leased| *leased > 0));
        let leased = leased.chain(iter::repeat(None));
        let takes = outcome.plan.takes().iter().zip(statuses).zip(leased);
        serializer.collect_seq(takes.map(|((take, (before, after)), leased)| {
            let shadow = now.shadow_decision();
            let shadow = shadow.and_then(|shadow| find_status(shadow.statuses(), before));
            let distributed = take.distribution().distributed.min(self.max_distribution).as_str();
            let shadow = shadow.map(ShadowStatus::new);
            TakeView { distributed, shadow, leased, ..TakeView::new(take, before, after) }
        }))
    }
}

impl<'a> TakeView<'a> {
    fn new(take: &'a Take<'_>, before: &Status<'_>, after: &Status<'_>) -> Self {
        let limit = take.key().limit();
        Self {
            key: take.key().to_string(),
            rule: limit.rule(),
            limit: limit.name(),
            unit: limit.unit().as_str(),
            algorithm: limit.algorithm().as_str(),
            numbers: LimitNumbers::of(limit),
            mode: mode_name(before.mode()),
            cost: take.cost(),
            verdict: verdict_name(before.verdict()),
            retry_after_ms: before.verdict().retry_after().map(rounding::millis),
            before: Figures::new(before),
            after: Figures::new(after),
            leased: None,
            distributed: take.distribution().distributed.as_str(),
            shadow: None,
        }
    }
}

/// Finds the status of the same limit as `like`.
fn find_status<'s, 'p>(statuses: &'s [Status<'p>], like: &Status<'_>) -> Option<&'s Status<'p>> {
    statuses.iter().find(|status| status.limit().identity() == like.limit().identity())
}

impl ShadowStatus {
    fn new(status: &Status<'_>) -> Self {
        Self {
            verdict: verdict_name(status.verdict()),
            retry_after_ms: status.verdict().retry_after().map(rounding::millis),
            count: status.count(),
            remaining: status.remaining(),
        }
    }
}

impl Figures {
    fn new(status: &Status<'_>) -> Self {
        let debt = Some(status.debt()).filter(|debt| *debt > 0);
        Self { count: status.count(), remaining: status.remaining(), debt }
    }
}
