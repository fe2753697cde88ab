//! Counts of the last five minutes, hour or day.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tollgate::{Clock, SystemClock};

use crate::node::NodeContext;
use crate::node::history::{HistoryRange, IntervalCounts, read_shared};
use crate::node::report::figures_interval;
#[cfg(test)]
use crate::reference_tests::names;

/// Response of `/api/history`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct History {
    #[cfg_attr(test, schemars(with = "names::HistoryRange"))]
    range: &'static str,
    /// Length of an interval in seconds.
    resolution_s: u64,
    /// Whether the counts are those of all nodes or of this node.
    #[cfg_attr(test, schemars(with = "names::HistoryScope"))]
    scope: &'static str,
    /// Whether the counts of all nodes are included; false while Redis is lost.
    complete: bool,
    /// Every interval of the range, oldest first. The last one may still grow.
    points: Vec<HistoryPoint>,
}

/// Counts of one interval.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HistoryPoint {
    /// Start of the interval, in milliseconds since the Unix epoch.
    t: u64,
    allowed: u64,
    refused: u64,
    /// Requests decided without the shared store; they also count as allowed or refused.
    degraded: u64,
    /// Failed store calls.
    errors: u64,
    /// For each rule that refused or is on trial: checked, refused, would refuse in shadow mode, would refuse by trial
    /// limits, decided differently than the shared store.
    rules: BTreeMap<String, [u64; 5]>,
}

/// Returns the history of all nodes. With the memory store and while Redis is lost, returns that of this node.
pub(super) async fn history(context: &NodeContext, range: HistoryRange) -> History {
    // The last second that every node has had time to report.
    let delay = figures_interval(context) + Duration::from_secs(1);
    if let Some(redis) = context.backend().redis().filter(|_| !context.is_degraded()) {
        let now = context.live().redis_time().unwrap_or_else(|| SystemClock::new().now());
        match read_shared(&redis.directory(), range, now - delay).await {
            Ok(intervals) => return History::new(range, Scope::Fleet, intervals),
            Err(error) => context.metrics().store().note_failure(&error),
        }
    }
    let end = SystemClock::new().now() - delay;
    let intervals = context.history().read(range, range.starts(end));
    let scope = match context.backend().redis() {
        Some(_) => Scope::NodeOfFleet,
        None => Scope::Node,
    };
    History::new(range, scope, intervals)
}

/// The nodes that counts cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Fleet,
    /// The only node, with the memory store.
    Node,
    /// One node of several, because Redis is lost.
    NodeOfFleet,
}

impl History {
    fn new(range: HistoryRange, scope: Scope, intervals: Vec<(u64, IntervalCounts)>) -> Self {
        Self {
            range: range.as_str(),
            resolution_s: range.resolution_s(),
            scope: if scope == Scope::Fleet { "fleet" } else { "node" },
            complete: scope != Scope::NodeOfFleet,
            points: intervals.into_iter().map(HistoryPoint::new).collect(),
        }
    }
}

impl HistoryPoint {
    fn new((t, counts): (u64, IntervalCounts)) -> Self {
        let [allowed, refused, degraded, errors] = counts.all;
        Self { t, allowed, refused, degraded, errors, rules: counts.rules }
    }
}
