//! JSON of the live events.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use tollgate::policy::{Condition, FactName, Policy, Rule};
use tollgate::{Limit, Overrides, Subject, Timestamp};

use super::timeline::Second;
use super::view::Rate;
use crate::metrics::{RuleTally, Tally};
use crate::node::PolicyLoad;
use crate::node::overrides::{CLIENT, TENANT};
use crate::node::report::{NodeStatus, RefusedKey};

/// Maximum number of rules in a policy event, without the default rule.
const MAX_RULES: usize = 200;

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

/// A refused key, its current rate, and whether an override of its client is active.
#[derive(Debug, Serialize)]
pub(super) struct Refused {
    key: String,
    tenant: String,
    rule: String,
    limit: String,
    count: u64,
    last_at: u64,
    facts: Option<BTreeMap<String, String>>,
    /// Refusals per second.
    rate: Thousandths,
    overridden: bool,
}

impl Refused {
    pub(super) fn new(refused: RefusedKey, policy: &Policy, overrides: &Overrides) -> Self {
        let RefusedKey { key, tenant, rule, limit, count, last_at, facts, rate_milli } = refused;
        let fact = |name: &str| facts.as_ref().and_then(|facts| facts.get(name));
        let overridden = fact(CLIENT).is_some_and(|client| {
            let tenant = fact(TENANT).map_or(policy.tenant(), String::as_str);
            overrides.get(&Subject::in_tenant(tenant, [client])).is_some()
        });
        let rate = Thousandths(rate_milli);
        Self { key, tenant, rule, limit, count, last_at, facts, rate, overridden }
    }
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
        }
    }
}

/// A policy event: the active policy and its rules.
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
    /// The conditions as in the policy file; empty for none.
    #[serde(rename = "match")]
    conditions: String,
    continues: bool,
    limits: Vec<String>,
    /// The burst of each limit; null where it equals the count.
    bursts: Vec<Option<u64>>,
    next: Vec<String>,
}

impl<'a> PolicyView<'a> {
    pub(super) fn new(policy: &'a Policy, file: Option<String>, load: PolicyLoad) -> Self {
        let rules = policy.rules().iter().take(MAX_RULES).chain([policy.default_rule()]);
        Self {
            version: policy.version(),
            file,
            rules_total: policy.rules().len(),
            error: load.error,
            warnings: policy.warnings(),
            rules: rules.map(RuleView::new).collect(),
        }
    }
}

impl<'a> RuleView<'a> {
    fn new(rule: &'a Rule) -> Self {
        let limits = |limits: &[Limit]| limits.iter().map(Limit::to_string).collect();
        Self {
            rule: rule.name(),
            mode: if rule.is_unlimited() { "unlimited" } else { rule.mode().as_str() },
            distributed: rule.distributed().as_str(),
            on_store_loss: rule.on_store_loss().as_str(),
            per: rule.per().iter().map(FactName::as_str).collect(),
            conditions: conditions_text(rule),
            continues: rule.continues(),
            limits: limits(rule.limits()),
            bursts: rule.limits().iter().map(burst).collect(),
            next: limits(rule.next()),
        }
    }
}

/// Returns the conditions of a rule, such as `path=/api/** method=GET,HEAD unless path=/api/health`.
fn conditions_text(rule: &Rule) -> String {
    let condition = |condition: &Condition| {
        format!("{}={}", condition.name(), condition.alternatives().join(","))
    };
    let conditions = rule.conditions().iter().map(condition);
    let exclusions = rule.exclusions().iter().map(|it| format!("unless {}", condition(it)));
    conditions.chain(exclusions).collect::<Vec<_>>().join(" ")
}

fn burst(limit: &Limit) -> Option<u64> {
    Some(limit.capacity()).filter(|burst| *burst != limit.count())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate::{Override, OverrideLimit};

    use super::*;

    fn policy() -> Policy {
        let text = "
version: 1
rules:
  - name: search
    match: { path: /search/**, method: [GET, HEAD] }
    unless: { path: /search/health }
    limits: [{ limit: 10/min, burst: 20 }, 100/h]
    continue: true
  - { name: all, limits: [10/s] }
";
        Policy::from_yaml("p.yaml", text, Policy::builtin_limit()).expect("a policy")
    }

    #[test]
    fn policy_event_contains_conditions_and_bursts() {
        let (policy, load) = (policy(), PolicyLoad { at: Timestamp::EPOCH, error: None });
        let view = serde_json::to_value(PolicyView::new(&policy, None, load)).expect("JSON");
        let rules = &view["rules"];
        assert_eq!(rules[0]["match"], "method=GET,HEAD path=/search/** unless path=/search/health");
        assert_eq!(rules[0]["continues"], true);
        assert_eq!(rules[0]["limits"], serde_json::json!(["10/min", "100/h"]));
        assert_eq!(rules[0]["bursts"], serde_json::json!([20, null]));
        assert_eq!((&rules[1]["match"], &rules[1]["continues"]), (&"".into(), &false.into()));
    }

    #[test]
    fn refused_key_of_an_overridden_client_is_marked() {
        let limit = OverrideLimit::new(20, Duration::from_secs(60));
        let override_ = Override::new(vec![limit]).expect("an override");
        let client = Subject::in_tenant("", ["c1"]);
        let overrides = Overrides::default().with(&client, Some(override_));
        let refused = |facts: &[(&str, &str)]| {
            let facts = facts.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let refused = RefusedKey {
                key: "c1".to_owned(),
                tenant: String::new(),
                rule: "search".to_owned(),
                limit: "60s".to_owned(),
                count: 1,
                last_at: 1,
                facts: Some(facts.collect()),
                rate_milli: 1500,
            };
            serde_json::to_value(Refused::new(refused, &policy(), &overrides)).expect("JSON")
        };
        let shown = refused(&[("client", "c1")]);
        assert_eq!((&shown["overridden"], &shown["rate"]), (&true.into(), &1.5.into()));
        assert_eq!(refused(&[("client", "c2")])["overridden"], false);
        assert_eq!(refused(&[("ip", "c1")])["overridden"], false);
        assert_eq!(refused(&[("client", "c1"), ("tenant", "t")])["overridden"], false);
    }
}
