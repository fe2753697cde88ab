//! Responses of the service as text for people.

use serde::Deserialize;
use tollgate::{Costs, Unit};

/// Note on a decision that was made without the shared store.
pub(super) const DEGRADED: &str =
    "degraded: the store is unreachable and this node decided without it";

/// Response of /check.
#[derive(Debug, Deserialize)]
pub(super) struct CheckReply {
    pub(super) allowed: bool,
    degraded: bool,
    verdict: String,
    rule: String,
    /// Name of the deciding limit; none if the request is unlimited.
    limit_name: Option<String>,
    limit: Option<u64>,
    burst: Option<u64>,
    #[serde(default)]
    limits: Vec<LimitStatus>,
    share: Option<u64>,
    remaining: Option<u64>,
    /// Seconds.
    retry_after: Option<f64>,
}

/// One limit of a decision.
#[derive(Debug, Deserialize)]
struct LimitStatus {
    rule: String,
    name: String,
    /// Servers of earlier versions count requests only.
    #[serde(default)]
    unit: UnitName,
}

/// The name of a unit.
#[derive(Debug, Deserialize)]
struct UnitName(String);

impl Default for UnitName {
    fn default() -> Self {
        Self("requests".to_owned())
    }
}

impl UnitName {
    /// Returns the unit after a number; empty for requests.
    fn suffix(&self) -> String {
        if self.0 == "requests" { String::new() } else { format!(" {}", self.0) }
    }
}

/// Response of /explain.
#[derive(Debug, Deserialize)]
pub(super) struct ExplainReply {
    answer: CheckReply,
    rules: Vec<TriedRule>,
    takes: Vec<Take>,
}

#[derive(Debug, Deserialize)]
struct TriedRule {
    rule: String,
    /// Why the rule does not match; none if it matches.
    because: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Take {
    key: String,
    #[serde(default)]
    unit: UnitName,
    algorithm: String,
    numbers: LimitNumbers,
    mode: String,
    cost: u64,
}

#[derive(Debug, Deserialize)]
struct LimitNumbers {
    limit: u64,
    window_ms: Option<u64>,
    ttl_ms: Option<u64>,
}

/// Problem body (RFC 9457) of an error response.
#[derive(Debug, Deserialize)]
pub(super) struct Problem {
    pub(super) detail: String,
}

impl CheckReply {
    /// Returns the decision on a request with these costs in one line.
    pub(super) fn line(&self, costs: &Costs) -> String {
        let rule = &self.rule;
        let unit = self.unit();
        let suffix = unit.suffix();
        let mut source = match &self.limit_name {
            Some(limit) => format!("rule {rule}, limit {limit}"),
            None => format!("rule {rule}"),
        };
        if self.degraded {
            source = format!("{source}; {DEGRADED}");
        }
        match (self.verdict.as_str(), self.remaining, self.retry_after) {
            ("allow", Some(remaining), _) => {
                let (_, capacity) = self.capacity().unwrap_or(("", remaining));
                format!("allowed: {remaining} of {capacity}{suffix} left ({source})")
            }
            ("allow", None, _) => format!("allowed: no limit ({source})"),
            (_, _, Some(seconds)) => format!("refused: retry in {seconds} s ({source})"),
            _ if self.limit == Some(0) => format!("refused: blocked by rule `{rule}`"),
            _ => match self.capacity() {
                Some((name, capacity)) => {
                    let cost = Unit::new(&unit.0).map_or(0, |unit| costs.get(&unit));
                    format!(
                        "refused: cost {cost} exceeds the {name} of {capacity}{suffix} ({source})"
                    )
                }
                None => format!("refused ({source})"),
            },
        }
    }

    /// Returns the unit of the deciding limit.
    fn unit(&self) -> UnitName {
        let is_deciding = |limit: &&LimitStatus| {
            limit.rule == self.rule && Some(&limit.name) == self.limit_name.as_ref()
        };
        let deciding = self.limits.iter().find(is_deciding);
        deciding.map_or_else(UnitName::default, |limit| UnitName(limit.unit.0.clone()))
    }

    /// Returns the largest cost that the deciding limit can ever allow, and what that number is called.
    fn capacity(&self) -> Option<(&'static str, u64)> {
        let share = self.share.map(|share| ("node's share", share));
        let burst = self.burst.map(|burst| ("burst", burst));
        share.or(burst).or(self.limit.map(|limit| ("limit", limit)))
    }
}

impl ExplainReply {
    /// Returns the tried rules, the takes and the decision, one per line.
    pub(super) fn lines(&self, costs: &Costs) -> Vec<String> {
        let rules = self.rules.iter().map(|tried| match &tried.because {
            Some(because) => format!("  {}: no match: {because}", tried.rule),
            None => format!("  {}: matched", tried.rule),
        });
        let takes = self.takes.iter().map(Take::line);
        rules.chain(takes).chain([self.answer.line(costs)]).collect()
    }
}

impl Take {
    fn line(&self) -> String {
        let Self { key, unit, algorithm, numbers, mode, cost } = self;
        let limit = numbers.limit;
        let window = match (numbers.window_ms, numbers.ttl_ms) {
            (Some(window), _) => format!(" per {window} ms"),
            (None, Some(ttl)) => format!(" concurrent, {ttl} ms each"),
            (None, None) => String::new(),
        };
        let unit = unit.suffix();
        format!("takes {cost} from {key}: {limit}{unit}{window}, {algorithm}, {mode}")
    }
}
