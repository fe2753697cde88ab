//! Why a question would be answered as it would be.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tollgate::policy::{Tried, TriedOutcome};
use tollgate::{Key, Outcome, Status, round_up};

use super::answer::{LimitNumbers, answer, name_of, name_of_mode};

/// The answer to /explain.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation<'o, 'p> {
    /// What /check would say now.
    answer: Option<Box<RawValue>>,
    /// Every rule that was tried, in order.
    rules: Rules<'o>,
    /// Every counter that would be taken from.
    takes: Takes<'o, 'p>,
    /// The client's own limits, where it has some.
    #[serde(rename = "override")]
    override_: Option<()>,
}

impl<'o, 'p> Explanation<'o, 'p> {
    pub(crate) fn new(tried: &'o [Tried], outcome: &'o Outcome<'o, 'p>) -> Self {
        let answer = String::from_utf8(answer(outcome)).ok();
        let answer = answer.and_then(|text| RawValue::from_string(text).ok());
        Self { answer, rules: Rules(tried), takes: Takes(outcome), override_: None }
    }
}

#[derive(Debug)]
struct Rules<'a>(&'a [Tried]);

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
            let matched = tried.outcome == TriedOutcome::Matched;
            let because = (!matched).then(|| tried.outcome.to_string());
            Rule { rule: &tried.rule, matched, because }
        }))
    }
}

#[derive(Debug)]
struct Takes<'o, 'p>(&'o Outcome<'o, 'p>);

#[derive(Debug, Serialize)]
struct Take<'a> {
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
}

#[derive(Debug, Serialize)]
struct Figures {
    count: u64,
    remaining: u64,
}

impl Serialize for Takes<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let outcome = self.0;
        let statuses = outcome.decision.statuses();
        let takes = outcome.plan.takes().iter().zip(statuses);
        serializer.collect_seq(takes.map(|(take, status)| {
            let would_take = if would_happen(status, outcome) { take.cost() } else { 0 };
            Take::new(take.key(), take.cost(), status, would_take)
        }))
    }
}

impl<'a> Take<'a> {
    fn new(key: Key<'a>, cost: u64, status: &Status<'_>, would_take: u64) -> Self {
        let limit = key.limit();
        let (count, remaining) = (status.count(), status.remaining());
        Self {
            key: key.to_string(),
            rule: limit.rule(),
            limit: limit.name(),
            algorithm: limit.algorithm().as_str(),
            numbers: LimitNumbers::of(limit),
            mode: name_of_mode(status.mode()),
            cost,
            verdict: name_of(status.verdict()),
            retry_after_ms: status.verdict().retry_after().map(round_up::millis),
            before: Figures { count, remaining },
            after: Figures {
                count: count.saturating_add(would_take),
                remaining: remaining.saturating_sub(would_take),
            },
        }
    }
}

/// A take happens if nothing enforced refuses, nor anything of its own group.
fn would_happen(status: &Status<'_>, outcome: &Outcome<'_, '_>) -> bool {
    let mut group =
        outcome.decision.statuses().iter().filter(|other| other.mode() == status.mode());
    outcome.decision.is_allowed() && group.all(|other| other.verdict().is_allowed())
}
