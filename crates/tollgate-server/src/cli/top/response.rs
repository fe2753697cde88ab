//! Events of `/api/live`, reduced to the fields that are shown. Unknown fields are ignored.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Active policy of the node that sends the stream.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Policy {
    pub(super) version: String,
    pub(super) file: Option<String>,
    pub(super) rules_total: u64,
    /// Why the current policy file could not be loaded.
    pub(super) error: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) rules: Vec<Rule>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Rule {
    pub(super) rule: String,
    pub(super) mode: String,
    pub(super) distributed: String,
    pub(super) on_store_loss: String,
    pub(super) per: Vec<String>,
    pub(super) limits: Vec<String>,
    /// Conditions of the rule.
    #[serde(default, rename = "match")]
    pub(super) conditions: String,
    /// Trial limits.
    pub(super) next: Vec<String>,
}

/// Points of the last 15 minutes.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct History {
    /// Whether this event starts the history; otherwise it continues the previous event.
    #[serde(default = "default_first")]
    pub(super) first: bool,
    pub(super) points: Vec<Point>,
}

const fn default_first() -> bool {
    true
}

/// Counts of the fleet in one second.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Point {
    /// Start of the second, in Unix milliseconds.
    pub(super) t: i64,
    pub(super) allowed: f64,
    pub(super) refused: f64,
    /// Counts of each rule that refused or is on trial: checked, refused, shadow, next, diverged.
    pub(super) rules: BTreeMap<String, Vec<f64>>,
}

/// Current state of the service.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Frame {
    pub(super) t: i64,
    pub(super) node: String,
    pub(super) scope: String,
    pub(super) points: Vec<Point>,
    pub(super) now: Now,
    pub(super) store: Store,
    pub(super) nodes: Vec<Node>,
    pub(super) refused: Vec<RefusedKey>,
}

/// Rates per second over the last 5 s.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Now {
    pub(super) allowed: f64,
    pub(super) refused: f64,
    pub(super) degraded: f64,
    pub(super) errors: f64,
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Store {
    pub(super) kind: String,
    pub(super) address: Option<String>,
    pub(super) server: Option<String>,
    pub(super) breaker: Option<String>,
    pub(super) keys: Option<u64>,
    pub(super) max_keys: Option<u64>,
    pub(super) warning: Option<String>,
    /// When the store was lost, in Unix milliseconds; none while it works.
    #[serde(default)]
    pub(super) lost_since: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) address: String,
    pub(super) state: String,
    /// None or 0 if the node sends no report.
    pub(super) allowed: Option<f64>,
    pub(super) refused: Option<f64>,
    pub(super) p99_us: Option<f64>,
    /// Whether the node sent a report recently.
    pub(super) reporting: bool,
    /// Whether its last report is at least 5 s old.
    #[serde(default)]
    pub(super) silent: bool,
    /// Time of its last report.
    #[serde(default)]
    pub(super) last_seen: Option<String>,
    pub(super) breaker: Option<String>,
    pub(super) version: Option<String>,
    pub(super) policy: Option<String>,
    pub(super) warning: Option<String>,
}

/// A key that was refused in the last 5 minutes.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct RefusedKey {
    pub(super) key: String,
    pub(super) tenant: String,
    pub(super) rule: String,
    pub(super) limit: String,
    /// The limit as in a policy. Services of earlier versions do not send it.
    #[serde(default)]
    pub(super) limit_text: Option<String>,
    /// Minimum number of refusals.
    pub(super) count: f64,
    /// Minimum number of refusals per second, over the last seconds.
    #[serde(default)]
    pub(super) rate: Option<f64>,
    /// Whether an override applies to the client.
    #[serde(default)]
    pub(super) overridden: bool,
    pub(super) last_at: i64,
    pub(super) facts: Option<BTreeMap<String, String>>,
}
