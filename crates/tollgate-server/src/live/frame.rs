//! What is shown, as JSON.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use tollgate::policy::{FactName, Policy, Rule};
use tollgate::{Limit, Timestamp};

use super::timeline::Second;
use super::view::Rate;
use crate::app::PolicyLoad;
use crate::metrics::{RuleTally, Tally};
use crate::node_report::{NodeStatus, RefusedKey};
use crate::wire::decision::window_ms;

/// The most rules that are told of.
const MOST_RULES: usize = 200;

/// Whose figures they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Scope {
    Fleet,
    Node,
}

/// A count of thousandths, shown as the decimal it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thousandths(pub(super) u64);

impl Serialize for Thousandths {
    #[expect(clippy::cast_precision_loss, reason = "it is for people to look at")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.0 / 1000, self.0 % 1000) {
            (whole, 0) => serializer.serialize_u64(whole),
            _ => serializer.serialize_f64(self.0 as f64 / 1000.0),
        }
    }
}

/// The last seconds, oldest first.
#[derive(Debug, Serialize)]
pub(super) struct Points<'a> {
    /// Whether this begins the history; others go on with it.
    pub(super) first: bool,
    pub(super) points: Vec<Point<'a>>,
}

/// One second.
#[derive(Debug, Serialize)]
pub(super) struct Point<'a> {
    t: u64,
    #[serde(flatten)]
    counted: Now,
    rules: BTreeMap<&'a str, [Thousandths; 5]>,
}

impl<'a> Point<'a> {
    pub(super) fn new((begin, second): (u64, &'a Second)) -> Self {
        let figures = |tally: &RuleTally| tally.figures().map(Thousandths);
        Self {
            t: begin,
            counted: Now::of(&Rate::of_second(second.all)),
            rules: second.rules.iter().map(|(rule, tally)| (&**rule, figures(tally))).collect(),
        }
    }
}

/// How long it took to decide, in microseconds.
#[derive(Debug, Serialize)]
struct Took {
    p50_us: Option<Thousandths>,
    p99_us: Option<Thousandths>,
}

impl Took {
    fn of(tally: &Tally) -> Self {
        let quantile = |permille: u64| tally.quantile(permille).map(Thousandths);
        Self { p50_us: quantile(500), p99_us: quantile(990) }
    }
}

/// What happens in a second.
#[derive(Debug, Serialize)]
pub(super) struct Now {
    allowed: Thousandths,
    refused: Thousandths,
    degraded: Thousandths,
    errors: Thousandths,
    #[serde(flatten)]
    took: Took,
}

impl Now {
    pub(super) fn of(rate: &Rate) -> Self {
        Self {
            allowed: Thousandths(rate.allowed),
            refused: Thousandths(rate.refused),
            degraded: Thousandths(rate.degraded),
            errors: Thousandths(rate.errors),
            took: Took::of(&rate.tally),
        }
    }
}

/// One moment of it all.
#[derive(Debug, Serialize)]
pub(super) struct Frame<'a> {
    pub(super) t: u64,
    pub(super) node: &'a str,
    pub(super) scope: Scope,
    pub(super) points: Vec<Point<'a>>,
    pub(super) now: Now,
    pub(super) store: Store<'a>,
    pub(super) nodes: Vec<Node<'a>>,
    /// How many there are, shown or not.
    pub(super) nodes_total: usize,
    pub(super) refused: Vec<RefusedKey>,
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
    heard: bool,
    breaker: Option<&'a str>,
    version: Option<&'a str>,
    policy: Option<&'a str>,
    warning: Option<&'a str>,
}

/// Who a node is, as far as it is known.
#[derive(Debug)]
pub(super) struct Who<'a> {
    pub(super) id: &'a str,
    pub(super) address: &'a str,
    pub(super) state: &'static str,
    pub(super) registered_at: Timestamp,
}

impl<'a> Node<'a> {
    pub(super) fn new(who: &Who<'a>, rate: Option<Rate>, told: Option<&'a NodeStatus>) -> Self {
        let heard = rate.is_some() && told.is_some();
        let rate = rate.unwrap_or_default();
        Self {
            id: who.id,
            address: who.address,
            state: who.state,
            registered_at: crate::wire::time::rfc3339(who.registered_at),
            allowed: Thousandths(rate.allowed),
            refused: Thousandths(rate.refused),
            p99_us: rate.tally.quantile(990).map(Thousandths),
            heard,
            breaker: told.and_then(|told| told.breaker.as_deref()),
            version: told.map(|told| &*told.version),
            policy: told.map(|told| &*told.policy),
            warning: told.and_then(|told| told.warning.as_deref()),
        }
    }
}

/// What is limited how.
#[derive(Debug, Serialize)]
pub(super) struct PolicyView<'a> {
    version: &'a str,
    file: Option<String>,
    rules_total: usize,
    error: Option<String>,
    warnings: &'a [String],
    rules: Vec<RuleView<'a>>,
}

#[derive(Debug, Serialize)]
struct RuleView<'a> {
    rule: &'a str,
    mode: &'static str,
    distributed: &'static str,
    on_store_loss: &'static str,
    per: Vec<&'a str>,
    limits: Vec<String>,
    next: Vec<String>,
}

impl<'a> PolicyView<'a> {
    pub(super) fn new(policy: &'a Policy, file: Option<String>, loaded: PolicyLoad) -> Self {
        let rules = policy.rules().iter().take(MOST_RULES).chain([policy.default_rule()]);
        Self {
            version: policy.version(),
            file,
            rules_total: policy.rules().len(),
            error: loaded.error,
            warnings: policy.warnings(),
            rules: rules.map(RuleView::new).collect(),
        }
    }
}

impl<'a> RuleView<'a> {
    fn new(rule: &'a Rule) -> Self {
        let limits = |limits: &[Limit]| limits.iter().map(in_words).collect();
        Self {
            rule: rule.name(),
            mode: if rule.is_unlimited() { "unlimited" } else { rule.mode().as_str() },
            distributed: rule.distributed().as_str(),
            on_store_loss: rule.on_store_loss().as_str(),
            per: rule.per().iter().map(FactName::as_str).collect(),
            limits: limits(rule.limits()),
            next: limits(rule.next()),
        }
    }
}

/// A limit as people write it.
fn in_words(limit: &Limit) -> String {
    match window_ms(limit) {
        Some(millis) if millis.is_multiple_of(1000) => {
            format!("{}/{}s", limit.count(), millis / 1000)
        }
        Some(millis) => format!("{}/{millis}ms", limit.count()),
        None => format!("{} at once", limit.count()),
    }
}
