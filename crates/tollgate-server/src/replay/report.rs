//! Results of a replay, for all output formats.

use std::collections::{BTreeSet, HashSet};

use tollgate::policy::{Policy, Rule, RuleMode};
use tollgate::{Algorithm, Subject};

use super::decider::Decider;
use super::pass::PassResult;
use super::request_facts::needed_facts;
use super::source::SkippedLines;
use super::suggestion::Suggestion;
use super::tally::{KeyCount, LimitCount, RuleInterval, RuleSeries, Tally};
use super::timescale::Timeline;

/// Maximum number of keys in a list.
const MAX_KEYS: usize = 100;

/// Results of a replay.
#[derive(Debug)]
pub(crate) struct Report {
    /// Name of the policy file.
    pub(crate) policy: String,
    pub(crate) logs: Vec<String>,
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    pub(crate) skipped: SkippedLines,
    pub(crate) limits: Vec<LimitCount>,
    /// Keys that were refused most.
    pub(crate) keys: Vec<ReportedKey>,
    /// Number of all keys that were refused.
    pub(crate) refused_keys: usize,
    pub(crate) series: Vec<RuleSeries>,
    /// Requests over time; each counts once.
    pub(crate) total: Vec<RuleInterval>,
    /// Start of the first interval and length of each, in microseconds.
    pub(crate) scale: (u64, u64),
    /// Time of the last request.
    pub(crate) last: u64,
    pub(crate) suggestions: Vec<Suggestion>,
    pub(crate) comparison: Option<Comparison>,
    /// What a reader must know about the figures.
    pub(crate) notes: Vec<String>,
}

/// A refused key.
#[derive(Debug, Clone)]
pub(crate) struct ReportedKey {
    pub(crate) key: String,
    pub(crate) rule: String,
    pub(crate) mode: RuleMode,
    pub(crate) refused: u64,
    /// Times of the first and last refusal, in microseconds.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) timeline: Timeline,
}

/// Results of a second policy beside the first.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) policy: String,
    pub(crate) refused: u64,
    /// Keys that only the second policy refuses, at most [`MAX_KEYS`], and the number of all.
    pub(crate) newly_refused: Vec<ReportedKey>,
    pub(crate) newly_refused_keys: usize,
    /// Keys that only the first policy refuses.
    pub(crate) no_longer_refused: Vec<ReportedKey>,
    pub(crate) no_longer_refused_keys: usize,
}

impl Report {
    pub(super) fn new(
        names: (String, Vec<String>),
        policy: &Policy,
        decider: Decider<'_>,
        read: PassResult,
    ) -> Self {
        let suggestions = Suggestion::all(policy, &decider.curves);
        let has_requests = decider.tally.requests > 0;
        let mut notes = if has_requests { notes(policy, &read) } else { Vec::new() };
        if decider.failed > 0 {
            let failed = decider.failed;
            notes.push(format!(
                "{failed} requests match rules with more than 16 limits together; the server returns an error for them"
            ));
        }
        let mut tally = decider.tally;
        tally.finish();
        Self {
            policy: names.0,
            logs: names.1,
            requests: tally.requests,
            refused: tally.refused,
            skipped: read.skipped,
            keys: most_refused(&tally, |_| true).0,
            refused_keys: tally.keys.len(),
            scale: tally.scale.bounds(),
            last: tally.last,
            limits: tally.limits,
            series: tally.series,
            total: tally.total,
            suggestions,
            comparison: None,
            notes,
        }
    }

    pub(crate) const fn allowed(&self) -> u64 {
        self.requests - self.refused
    }
}

impl Comparison {
    pub(super) fn new(policy: String, first: &Tally, second: &Tally) -> Self {
        let (refused_first, refused_second) = (refused_subjects(first), refused_subjects(second));
        let only = |tally: &Tally, others: &HashSet<&str>| {
            most_refused(tally, |key| !key.is_shadow && !others.contains(&*key.subject))
        };
        let (newly_refused, newly_refused_keys) = only(second, &refused_first);
        let (no_longer_refused, no_longer_refused_keys) = only(first, &refused_second);
        Self {
            policy,
            refused: second.refused,
            newly_refused,
            newly_refused_keys,
            no_longer_refused,
            no_longer_refused_keys,
        }
    }
}

fn refused_subjects(tally: &Tally) -> HashSet<&str> {
    tally.keys.iter().filter(|key| !key.is_shadow).map(|key| &*key.subject).collect()
}

/// Returns the most refused of the keys that are `wanted`, and the number of all of them.
fn most_refused(tally: &Tally, wanted: impl Fn(&KeyCount) -> bool) -> (Vec<ReportedKey>, usize) {
    let mut keys: Vec<&KeyCount> = tally.keys.iter().filter(|key| wanted(key)).collect();
    let count = keys.len();
    keys.sort_unstable_by(|one, other| {
        other
            .refused
            .cmp(&one.refused)
            .then_with(|| (&one.subject, one.rule).cmp(&(&other.subject, other.rule)))
    });
    keys.truncate(MAX_KEYS);
    (keys.into_iter().map(|key| reported(tally, key)).collect(), count)
}

fn reported(tally: &Tally, key: &KeyCount) -> ReportedKey {
    let readable = Subject::from_escaped(&key.subject).map(|subject| subject.key().into_owned());
    ReportedKey {
        key: readable.unwrap_or_else(|| key.subject.to_string()),
        rule: tally.series.get(key.rule).map(|series| series.rule.clone()).unwrap_or_default(),
        mode: if key.is_shadow { RuleMode::Shadow } else { RuleMode::Enforce },
        refused: key.refused,
        first: key.first,
        last: key.last,
        timeline: key.timeline.clone(),
    }
}

/// Returns notes about facts that the log lacks and limits that it cannot show.
fn notes(policy: &Policy, read: &PassResult) -> Vec<String> {
    let mut notes = Vec::new();
    let rules = || policy.rules().iter().chain([policy.default_rule()]);
    let missing: BTreeSet<String> = needed_facts(policy)
        .filter(|fact| {
            !["client", "tenant", "tier"].contains(&fact.as_str())
                && policy.fact_spec(fact).is_none()
                && !read.facts.has_seen(fact)
        })
        .collect();
    for fact in missing {
        notes.push(format!(
            "the policy uses the fact `{fact}`, which the log does not contain; name its JSON field with --field {fact}=NAME"
        ));
    }
    let holds_slots =
        rules().flat_map(Rule::limits).any(|limit| limit.algorithm() == Algorithm::Concurrency);
    if holds_slots {
        notes.push("a log does not show when requests end; each holds its concurrency slot for the whole ttl".to_owned());
    }
    notes
}
