//! JSON of the live events.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use tollgate::Timestamp;

use super::refused::Refused;
use super::timeline::Second;
use super::view::Rate;
use crate::metrics::{RuleTally, Tally};
use crate::node::report::NodeStatus;

/// Whether the figures cover the fleet or one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Scope {
    Fleet,
    Node,
}

/// A count of thousandths, serialized as a decimal number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thousandths(pub(super) u64);

impl Serialize for Thousandths {
    #[expect(clippy::cast_precision_loss, reason = "display only")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.0 / 1000, self.0 % 1000) {
            (whole, 0) => serializer.serialize_u64(whole),
            _ => serializer.serialize_f64(self.0 as f64 / 1000.0),
        }
    }
}

/// A history event: seconds, oldest first.
#[derive(Debug, Serialize)]
pub(super) struct Points<'a> {
    /// Whether this is the first event of the history.
    pub(super) first: bool,
    pub(super) points: Vec<Point<'a>>,
}

/// Figures of one second.
#[derive(Debug, Serialize)]
pub(super) struct Point<'a> {
    t: u64,
    #[serde(flatten)]
    rates: Rates,
    rules: BTreeMap<&'a str, [Thousandths; 5]>,
}

impl<'a> Point<'a> {
    pub(super) fn new((start, second): (u64, &'a Second)) -> Self {
        let figures = |tally: &RuleTally| tally.figures().map(Thousandths);
        Self {
            t: start,
            rates: Rates::of(&Rate::of_second(second.all)),
            rules: second.rules.iter().map(|(rule, tally)| (&**rule, figures(tally))).collect(),
        }
    }
}

/// Decision latency in microseconds.
#[derive(Debug, Serialize)]
struct Latency {
    p50_us: Option<Thousandths>,
    p99_us: Option<Thousandths>,
}

impl Latency {
    fn of(tally: &Tally) -> Self {
        let quantile = |permille: u64| tally.quantile(permille).map(Thousandths);
        Self { p50_us: quantile(500), p99_us: quantile(990) }
    }
}

/// Counts per second, and latency.
#[derive(Debug, Serialize)]
pub(super) struct Rates {
    allowed: Thousandths,
    refused: Thousandths,
    degraded: Thousandths,
    errors: Thousandths,
    #[serde(flatten)]
    latency: Latency,
}

impl Rates {
    pub(super) fn of(rate: &Rate) -> Self {
        Self {
            allowed: Thousandths(rate.allowed),
            refused: Thousandths(rate.refused),
            degraded: Thousandths(rate.degraded),
            errors: Thousandths(rate.errors),
            latency: Latency::of(&rate.tally),
        }
    }
}

/// A frame event: the current figures.
#[derive(Debug, Serialize)]
pub(super) struct Frame<'a> {
    pub(super) t: u64,
    pub(super) node: &'a str,
    pub(super) scope: Scope,
    pub(super) points: Vec<Point<'a>>,
    pub(super) now: Rates,
    /// Requests per second by front end.
    pub(super) requests: BTreeMap<&'a str, Thousandths>,
    pub(super) store: Store<'a>,
    pub(super) nodes: Vec<Node<'a>>,
    /// Number of all nodes, shown or not.
    pub(super) nodes_total: usize,
    pub(super) refused: Vec<Refused>,
    /// The nodes of the fleet when Redis last listed them.
    pub(super) known_nodes: &'a [KnownNode],
    /// A text that changes with every event.
    pub(super) latest_event: Option<String>,
}

/// Maximum number of known nodes.
pub(super) const MAX_KNOWN_NODES: usize = 50;

/// Id and address of a node.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct KnownNode {
    pub(super) id: String,
    pub(super) address: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Store<'a> {
    pub(super) kind: &'static str,
    pub(super) address: Option<&'a str>,
    pub(super) server: Option<&'a str>,
    pub(super) breaker: Option<&'a str>,
    pub(super) keys: Option<usize>,
    pub(super) max_keys: Option<usize>,
    pub(super) warning: Option<&'a str>,
    /// Start of the current loss, in milliseconds since the Unix epoch.
    pub(super) lost_since: Option<u64>,
    pub(super) loss_reason: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Node<'a> {
    id: &'a str,
    address: &'a str,
    state: &'static str,
    registered_at: String,
    allowed: Thousandths,
    refused: Thousandths,
    p99_us: Option<Thousandths>,
    /// Whether the node has reported recently.
    #[serde(rename = "reporting")]
    has_reported: bool,
    breaker: Option<&'a str>,
    version: Option<&'a str>,
    policy: Option<&'a str>,
    warning: Option<&'a str>,
    last_seen: String,
    silent: bool,
    /// Start of the node's loss of its store, in milliseconds since the Unix epoch.
    lost_since: Option<u64>,
    /// Leases that the node holds, and checks per second decided from leases.
    leases: Option<u64>,
    leased: Thousandths,
}

/// Identity and state of a node, from the directory.
#[derive(Debug)]
pub(super) struct NodeIdentity<'a> {
    pub(super) id: &'a str,
    pub(super) address: &'a str,
    pub(super) state: &'static str,
    pub(super) registered_at: Timestamp,
    pub(super) last_seen: Timestamp,
    pub(super) is_silent: bool,
}

impl<'a> Node<'a> {
    pub(super) fn new(
        identity: &NodeIdentity<'a>,
        rate: Option<Rate>,
        status: Option<&'a NodeStatus>,
    ) -> Self {
        let has_reported = rate.is_some() && status.is_some();
        let rate = rate.unwrap_or_default();
        Self {
            id: identity.id,
            address: identity.address,
            state: identity.state,
            registered_at: crate::wire::time::rfc3339(identity.registered_at),
            allowed: Thousandths(rate.allowed),
            refused: Thousandths(rate.refused),
            p99_us: rate.tally.quantile(990).map(Thousandths),
            has_reported,
            breaker: status.and_then(|status| status.breaker.as_deref()),
            version: status.map(|status| &*status.version),
            policy: status.map(|status| &*status.policy),
            warning: status.and_then(|status| status.warning.as_deref()),
            last_seen: crate::wire::time::rfc3339(identity.last_seen),
            silent: identity.is_silent,
            lost_since: status.and_then(|status| status.lost_since),
            leases: status.and_then(|status| status.leases),
            leased: Thousandths(rate.leased),
        }
    }
}
