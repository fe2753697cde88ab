//! JSON of the policy event.

use serde::Serialize;
use tollgate::Limit;
use tollgate::policy::{Condition, FactName, Policy, Rule};

use crate::node::PolicyLoad;

/// Maximum number of rules in a policy event, without the default rule.
const MAX_RULES: usize = 200;

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
    use tollgate::Timestamp;

    use super::*;

    fn policy() -> Policy {
        let text = "
version: 1
rules:
  - name: search
    match: { path: /search/**, method: [GET, HEAD] }
    unless: { path: /search/health }
    limits: [{ rate: 10/min, burst: 20, algorithm: token_bucket }, 100/h]
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
        assert_eq!(rules[0]["match"], "path=/search/** method=GET,HEAD unless path=/search/health");
        assert_eq!(rules[0]["continues"], true);
        assert_eq!(rules[0]["limits"], serde_json::json!(["10/min", "100/h"]));
        assert_eq!(rules[0]["bursts"], serde_json::json!([20, null]));
        assert_eq!((&rules[1]["match"], &rules[1]["continues"]), (&"".into(), &false.into()));
    }
}
