//! The body of `PUT /clients/{id}/limits`.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use tollgate::policy::Policy;
use tollgate::{Algorithm, ClientId, Override, OverrideLimit, Timestamp};

use super::problem::Problem;

/// Largest number that all components represent exactly.
const MAX_NUMBER: u64 = (1 << 53) - 1;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OverrideBody {
    limits: Vec<LimitBody>,
    pub(super) rule: Option<String>,
    #[serde(default)]
    all_rules: bool,
    /// Also resets the client's usage.
    #[serde(default)]
    pub(super) fresh: bool,
    pub(super) reason: Option<String>,
    pub(super) author: Option<String>,
    expires_at: Option<jiff::Timestamp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitBody {
    limit: u64,
    window_ms: Option<u64>,
    burst: Option<u64>,
    algorithm: Option<AlgorithmName>,
    name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AlgorithmName {
    TokenBucket,
    SlidingWindow,
    SlidingCounter,
    FixedWindow,
    Concurrency,
}

impl OverrideBody {
    pub(super) fn parse(body: &[u8]) -> Result<Self, Problem> {
        serde_json::from_slice(body).map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, format!("invalid body: {error}"))
        })
    }

    /// Builds the override and checks it against the policy.
    pub(super) fn build(
        &self,
        client: &ClientId,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Override, Problem> {
        let limits = self.limits.iter().enumerate().map(|(index, limit)| limit.build(index));
        let built = Override::new(limits.collect::<Result<_, _>>()?)?;
        let built = match &self.rule {
            Some(_) if self.all_rules => {
                return Err(Problem::invalid("all_rules", "cannot be combined with `rule`"));
            }
            Some(rule) => built.for_rule(rule.as_str()),
            None => built,
        };
        let mut rules = client.overridable_rules(policy);
        let changed = built.applies_to(policy)?;
        rules.retain(|rule| changed.contains(rule));
        let built = match rules.as_slice() {
            _ if self.rule.is_some() || self.all_rules => built,
            [rule] => built.for_rule(*rule),
            [] => return Err(Problem::invalid("rule", "no rule of the policy counts this client")),
            rules => {
                let detail = format!(
                    "several rules count this client; set it to one of {}, or set \"all_rules\": true",
                    rules.join(", ")
                );
                return Err(Problem::invalid("rule", detail));
            }
        };
        let built = built.valid(now, self.expiry()?);
        if built.is_expired(now) {
            return Err(Problem::invalid("expires_at", "is in the past"));
        }
        Ok(built)
    }

    fn expiry(&self) -> Result<Option<Timestamp>, Problem> {
        let Some(expiry) = self.expires_at else { return Ok(None) };
        let micros = u64::try_from(expiry.as_microsecond()).unwrap_or(0);
        if micros > MAX_NUMBER {
            return Err(Problem::invalid("expires_at", "must be before the year 2255"));
        }
        Ok(Some(Timestamp::from_micros(micros)))
    }
}

impl LimitBody {
    fn build(&self, index: usize) -> Result<OverrideLimit, Problem> {
        let field = |name: &str| format!("limits[{index}].{name}");
        for (name, value) in
            [("limit", Some(self.limit)), ("window_ms", self.window_ms), ("burst", self.burst)]
        {
            if value.is_some_and(|value| value > MAX_NUMBER) {
                return Err(Problem::invalid(&field(name), "must be at most 2^53 - 1"));
            }
        }
        let is_concurrency = self.algorithm == Some(AlgorithmName::Concurrency);
        let limit = match self.window_ms {
            None if is_concurrency => OverrideLimit::slots(self.limit),
            None => return Err(Problem::invalid(&field("window_ms"), "is missing")),
            Some(_) if is_concurrency => {
                return Err(Problem::invalid(&field("window_ms"), "is not used with concurrency"));
            }
            Some(0) => return Err(Problem::invalid(&field("window_ms"), "must be at least 1")),
            Some(window) => OverrideLimit::new(self.limit, Duration::from_millis(window)),
        };
        let limit = match self.algorithm {
            Some(algorithm) => limit.with_algorithm(algorithm.into()),
            None => limit,
        };
        let limit = self.burst.map_or(limit.clone(), |burst| limit.burst(burst));
        Ok(match &self.name {
            Some(name) => limit.named(name.as_str()),
            None => limit,
        })
    }
}

impl From<AlgorithmName> for Algorithm {
    fn from(name: AlgorithmName) -> Self {
        match name {
            AlgorithmName::TokenBucket => Self::TokenBucket,
            AlgorithmName::SlidingWindow => Self::SlidingWindow,
            AlgorithmName::SlidingCounter => Self::SlidingCounter,
            AlgorithmName::FixedWindow => Self::FixedWindow,
            AlgorithmName::Concurrency => Self::Concurrency,
        }
    }
}
