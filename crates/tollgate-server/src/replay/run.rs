//! A replay: one or two passes over the logs, and their report.

use std::path::PathBuf;

use tollgate::Request;
use tollgate::policy::Policy;

use super::curve::first_values;
use super::decider::{Curves, Decider};
use super::error::ReplayError;
use super::line::CostField;
use super::pass::Logs;
use super::report::{Comparison, Report};
use super::request_facts::{defined_facts, needed_facts};
use super::suggestion::Suggestion;

/// What to replay.
#[derive(Debug)]
pub(crate) struct Replay<'r> {
    /// Name of the policy file, and the policy.
    pub(crate) policy: (&'r str, &'r Policy),
    /// A second policy to compare with.
    pub(crate) other: Option<(&'r str, &'r Policy)>,
    pub(crate) logs: &'r [PathBuf],
    /// Pairs of fact and JSON field.
    pub(crate) fields: &'r [(String, String)],
    pub(crate) costs: &'r [CostField],
}

/// Replays the logs. If they can be read again, a second pass refines the suggested limits.
pub(crate) fn replay(replay: &Replay<'_>) -> Result<Report, ReplayError> {
    let (name, policy) = replay.policy;
    let policies = [Some(policy), replay.other.map(|(_, other)| other)];
    let needed: Vec<String> = policies.into_iter().flatten().flat_map(needed_facts).collect();
    let facts: Vec<&str> = needed.iter().map(String::as_str).collect();
    let logs = Logs::new(replay.logs, &facts, replay.fields, replay.costs)?;
    let mut first = Decider::new(policy, Curves::new(policy, first_values));
    let mut second = replay.other.map(|(_, other)| Decider::new(other, Curves::default()));
    let read = logs.read("replay", |at, facts, costs| {
        if let Some(second) = &mut second {
            second.decide(at, facts.clone(), costs.clone());
        }
        first.decide(at, facts, costs);
    })?;
    let comparison = replay
        .other
        .zip(second)
        .map(|((name, _), second)| Comparison::new(name.to_owned(), &first.tally, &second.tally));
    let names = replay.logs.iter().map(|log| log.display().to_string()).collect();
    let mut report = Report::new((name.to_owned(), names), policy, first, read);
    report.comparison = comparison;
    if logs.can_repeat() {
        refine_suggestions(&logs, policy, &mut report.suggestions)?;
    }
    Ok(report)
}

/// Reads the logs again to try counts between those of the first pass. The suggestions are those of the policy's limits,
/// in order.
pub(super) fn refine_suggestions(
    logs: &Logs,
    policy: &Policy,
    suggestions: &mut [Suggestion],
) -> Result<(), ReplayError> {
    let mut wanted = suggestions.iter();
    let mut curves = Curves::new(policy, |limit| {
        // A block has no curve.
        let suggestion = if limit.count() == 0 { None } else { wanted.next() };
        suggestion.map(Suggestion::next_values).unwrap_or_default()
    });
    if curves.is_empty() {
        return Ok(());
    }
    logs.read("refine limits", |at, facts, costs| {
        let request = Request::new(defined_facts(policy, facts)).with_costs(costs);
        curves.take(at, &policy.plan(&request));
    })?;
    for (rule, limit, curve) in curves.iter(policy) {
        let same = |suggestion: &&mut Suggestion| {
            suggestion.rule == rule.name() && suggestion.limit_name == limit.name()
        };
        if let Some(suggestion) = suggestions.iter_mut().find(same) {
            suggestion.refine(curve.points());
        }
    }
    Ok(())
}
