//! Policies of the measured tollgate server, and the request bodies for each.
//!
//! Every limit is a token bucket whose burst is larger than a run, and a key needs an hour to
//! refill after one request. With a faster refill, keys could be dropped within microseconds, and a
//! server that cleans up early would be measured with an almost empty store.

use tempfile::NamedTempFile;

use crate::load::template::{KEY, RULE};
use crate::{Outcome, config_file};

/// Burst per key, more requests than a key makes in a run.
pub const BURST: u32 = 1_000_000;

/// Refill time of one token in seconds.
pub const PERIOD_SECONDS: u32 = 3600;

/// The rules of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// No rules: the default limit applies.
    Default,
    /// This many rules, each with one limit and its own paths.
    Rules(u32),
    /// One rule with two limits.
    TwoLimits,
}

impl Policy {
    /// Returns the name in the tables.
    #[must_use]
    pub fn label(self) -> String {
        match self {
            Self::Default => "no rules, default limit".to_owned(),
            Self::Rules(1) => "1 rule".to_owned(),
            Self::Rules(count) => format!("{count} rules"),
            Self::TwoLimits => "1 rule with two limits".to_owned(),
        }
    }

    /// Returns the number of rules that requests are spread over.
    #[must_use]
    pub fn rules(self) -> u32 {
        match self {
            Self::Default | Self::TwoLimits => 1,
            Self::Rules(count) => count,
        }
    }

    /// Returns the body of a request; see [`template`](crate::load::template) for the placeholders.
    #[must_use]
    pub fn body(self) -> String {
        match self {
            Self::Default => format!(r#"{{"key":"user:{KEY}"}}"#),
            Self::Rules(_) | Self::TwoLimits => {
                format!(r#"{{"facts":{{"client":"user:{KEY}","path":"/p{RULE}/item"}}}}"#)
            }
        }
    }

    /// Writes the policy to a temporary file, deleted on drop.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn file(self) -> Outcome<NamedTempFile> {
        config_file::create(&self.text())
    }

    fn text(self) -> String {
        let hourly = limit(&format!("{PERIOD_SECONDS}s"));
        let limits = match self {
            Self::TwoLimits => format!("{}, {hourly}", limit("60s")),
            Self::Default | Self::Rules(_) => hourly.clone(),
        };
        let rules = match self {
            Self::Default => 0..0,
            Self::Rules(_) | Self::TwoLimits => 0..self.rules(),
        };
        let mut text = format!("version: 1\ndefaults: {{ limit: {hourly} }}\n");
        if !rules.is_empty() {
            text.push_str("rules:\n");
        }
        for rule in rules {
            let matched = format!("match: {{ path: /p{rule:08}/** }}");
            text.push_str(&format!(
                "  - {{ name: r{rule}, {matched}, per: [client], limits: [{limits}] }}\n"
            ));
        }
        text
    }
}

fn limit(period: &str) -> String {
    format!("{{ rate: 1/{period}, burst: {BURST}, algorithm: token_bucket }}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURLY: &str = "{ rate: 1/3600s, burst: 1000000, algorithm: token_bucket }";

    #[test]
    fn default_policy_has_no_rules() {
        let text = format!("version: 1\ndefaults: {{ limit: {HOURLY} }}\n");
        assert_eq!(Policy::Default.text(), text);
        let file = Policy::Default.file().unwrap();
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), text);
    }

    #[test]
    fn every_rule_has_its_own_paths() {
        let text = Policy::Rules(3).text();
        let rule = |name: &str, path: &str| {
            format!(
                "  - {{ name: {name}, match: {{ path: {path} }}, per: [client], limits: [{HOURLY}] }}\n"
            )
        };
        let rules =
            [rule("r0", "/p00000000/**"), rule("r1", "/p00000001/**"), rule("r2", "/p00000002/**")];
        assert!(text.ends_with(&format!("rules:\n{}", rules.concat())), "{text}");
        assert_eq!(Policy::Rules(10_000).text().lines().count(), 10_003);
    }

    #[test]
    fn two_limits_policy_has_one_rule() {
        let minutely = HOURLY.replace("3600", "60");
        let text = Policy::TwoLimits.text();
        assert!(text.ends_with(&format!("limits: [{minutely}, {HOURLY}] }}\n")), "{text}");
    }
}
