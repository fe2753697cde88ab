//! `tollgate policy suggest`: a starting policy from the traffic of logs.
//!
//! The first pass groups paths into routes. The second tries limits per client for each route, as a replay does, and a
//! third refines them. The limit of a route is the smallest that refuses at most 0.1 % of its requests, rounded up.

mod peaks;
mod routes;
mod write;

use std::path::PathBuf;

use tollgate::Request;
use tollgate::policy::Policy;

use super::curve::first_values;
use super::decider::Curves;
use super::error::ReplayError;
use super::pass::Logs;
use super::run::refine_suggestions;
use super::source::SkippedLines;
use super::suggestion::Suggestion;
use peaks::Peaks;
use routes::Routes;

/// A suggested policy, and the lines that were not read.
#[derive(Debug)]
pub(crate) struct SuggestedPolicy {
    pub(crate) yaml: String,
    pub(crate) skipped: SkippedLines,
}

/// Returns a policy in shadow mode for the traffic of these logs.
pub(crate) fn suggest(
    paths: &[PathBuf],
    fields: &[(String, String)],
) -> Result<SuggestedPolicy, ReplayError> {
    let logs = Logs::new(paths, &["client"], fields, &[])?;
    if !logs.can_repeat() {
        logs.check_readable()?;
        return Err(ReplayError::new(
            "policy suggest reads the logs several times; save standard input or a pipe to a file first",
        ));
    }
    let mut routes = Routes::default();
    let read = logs.read("find routes", |_, facts, _| {
        routes.add(facts.get("path").unwrap_or_default());
    })?;
    let routes = routes.into_rules();
    if routes.iter().all(|route| route.requests == 0) {
        return Err(ReplayError::new(
            "the logs contain no requests; there is nothing to base a policy on",
        ));
    }
    let policy =
        Policy::from_yaml("suggested policy", &write::draft(&routes), Policy::builtin_limit())
            .map_err(|error| ReplayError::new(format!("internal error: {error}")))?;
    let mut curves = Curves::new(&policy, first_values);
    let mut peaks: Vec<Peaks> = routes.iter().map(|_| Peaks::default()).collect();
    logs.read("try limits", |at, facts, _| {
        let planned = policy.plan(&Request::new(facts));
        curves.take(at, &planned);
        for matched in planned.matched() {
            if let Some(peaks) = peaks.get_mut(matched.rule().index()) {
                peaks.add(matched.subject().as_str(), at);
            }
        }
    })?;
    let mut suggestions = Suggestion::all(&policy, &curves);
    refine_suggestions(&logs, &policy, &mut suggestions)?;
    let yaml = write::policy(&routes, &suggestions, &peaks);
    Ok(SuggestedPolicy { yaml, skipped: read.skipped })
}
