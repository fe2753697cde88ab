//! What `/api/live` tells, as far as it is shown. Fields of later versions are passed over.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The policy of the node that is asked.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Policy {
    pub(super) version: String,
    pub(super) file: Option<String>,
    pub(super) rules_total: u64,
    /// Why the file as it is now is not in force.
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
    /// Limits that are tried.
    pub(super) next: Vec<String>,
}

/// The last quarter of an hour.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct History {
    /// Whether it begins here; if not, it goes on.
    #[serde(default = "yes")]
    pub(super) first: bool,
    pub(super) points: Vec<Point>,
}

const fn yes() -> bool {
    true
}

/// A second of the fleet.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Point {
    /// When it began, in Unix milliseconds.
    pub(super) t: i64,
    pub(super) allowed: f64,
    pub(super) refused: f64,
    /// Of each rule that did more than allow: checked, refused, shadow, next, diverged.
    pub(super) rules: BTreeMap<String, Vec<f64>>,
}

/// How things are now.
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

/// Per second, lately.
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
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) address: String,
    pub(super) state: String,
    /// Nothing, as 0, where it tells nothing.
    pub(super) allowed: Option<f64>,
    pub(super) refused: Option<f64>,
    pub(super) p99_us: Option<f64>,
    /// Whether it told its figures lately.
    pub(super) heard: bool,
    pub(super) breaker: Option<String>,
    pub(super) version: Option<String>,
    pub(super) policy: Option<String>,
    pub(super) warning: Option<String>,
}

/// A key that was refused in the last minutes.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct RefusedKey {
    pub(super) key: String,
    pub(super) tenant: String,
    pub(super) rule: String,
    pub(super) limit: String,
    /// At least so often.
    pub(super) count: f64,
    pub(super) last_at: i64,
    pub(super) facts: Option<BTreeMap<String, String>>,
}
