//! Traces: which rules were tried for a request, and why each matched or not.

use std::borrow::Cow;
use std::fmt;

use super::condition::Condition;
use super::normalized_facts::NormalizedFacts;
use super::rule::{MatchResult, Rule};

/// Every rule that was tried for a request, in order, with its outcome.
///
/// ```
/// use tollgate::policy::Policy;
/// use tollgate::{Facts, Limit, Request};
///
/// let text = "
/// version: 1
/// rules:
///   - { name: search, match: { path: /search }, limits: [10/min] }
/// ";
/// let policy = Policy::from_yaml("p.yaml", text, Limit::block())?;
/// let trace = policy.explain(&Request::new(Facts::of([("path", "/")])?));
/// assert_eq!(trace.to_string(), "search: path is \"/\", expected \"/search\"\ndefault: matched\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    tried: Vec<TriedRule>,
    ends_with_default: bool,
}

/// A rule that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TriedRule {
    /// The name of the rule.
    pub rule: String,
    /// Whether it matched, or the reason why not.
    pub outcome: RuleOutcome,
}

/// The outcome of trying a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleOutcome {
    /// The rule matched.
    Matched,
    /// A condition did not hold. Only one such condition is reported: the first on a fact that the request has, else
    /// the first.
    Failed {
        /// The condition, such as `path` or `headers.x-plan`.
        condition: String,
        /// The accepted values, as written in the policy.
        expected: Vec<String>,
        /// The value of the fact (bytes that are not UTF-8 are replaced; for an API key, its digest), or
        /// `None` if the request does not have the fact.
        found: Option<String>,
    },
    /// A condition of `unless` holds. Only the first such condition is reported.
    Excluded {
        /// The condition, such as `path` or `headers.x-plan`.
        condition: String,
        /// The value of the fact, as in [`Failed`](Self::Failed).
        found: String,
    },
    /// The request lacks a `per` fact and the rule has `missing: skip`.
    MissingFact {
        /// The name of the fact.
        fact: String,
    },
}

impl Trace {
    pub(super) const fn new() -> Self {
        Self { tried: Vec::new(), ends_with_default: false }
    }

    pub(super) fn add(
        &mut self,
        rule: &Rule,
        result: MatchResult<'_>,
        facts: &NormalizedFacts<'_, '_>,
        is_default: bool,
    ) {
        let lossy = |value: Cow<'_, [u8]>| String::from_utf8_lossy(&value).into_owned();
        let outcome = match result {
            MatchResult::Matched => RuleOutcome::Matched,
            MatchResult::Failed(first) => {
                // A different value rules the rule out; a missing fact only leaves it open.
                let differs = |condition: &&Condition| {
                    !condition.holds(facts) && facts.matched_value(condition.fact()).is_some()
                };
                let condition = rule.conditions().iter().find(differs).unwrap_or(first);
                RuleOutcome::Failed {
                    condition: condition.name().to_owned(),
                    expected: condition.alternatives().iter().map(ToString::to_string).collect(),
                    found: facts.matched_value(condition.fact()).map(lossy),
                }
            }
            MatchResult::Excluded(condition) => RuleOutcome::Excluded {
                condition: condition.name().to_owned(),
                found: facts.matched_value(condition.fact()).map(lossy).unwrap_or_default(),
            },
            MatchResult::MissingFact(fact) => RuleOutcome::MissingFact { fact: fact.to_string() },
        };
        self.ends_with_default = is_default && outcome == RuleOutcome::Matched;
        self.tried.push(TriedRule { rule: rule.name().to_owned(), outcome });
    }

    /// Returns every rule that was tried, in order. The default rule is last, and only tried if no other rule
    /// matched.
    #[must_use]
    pub fn tried(&self) -> &[TriedRule] {
        &self.tried
    }

    /// Returns the names of the rules that apply.
    pub fn matched(&self) -> impl Iterator<Item = &str> {
        let matched = self.tried.iter().filter(|tried| tried.outcome == RuleOutcome::Matched);
        matched.map(|tried| tried.rule.as_str())
    }

    /// Returns whether no rule matched and the default rule applies.
    #[must_use]
    pub const fn ends_with_default(&self) -> bool {
        self.ends_with_default
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for TriedRule { rule, outcome } in &self.tried {
            writeln!(f, "{rule}: {outcome}")?;
        }
        Ok(())
    }
}

impl fmt::Display for RuleOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matched => f.write_str("matched"),
            Self::Excluded { condition, found } => {
                write!(f, "{condition} is {found:?}, which the rule excludes with unless")
            }
            Self::MissingFact { fact } => {
                write!(f, "{fact} is missing, and the rule has missing: skip")
            }
            Self::Failed { condition, expected, found } => {
                match found {
                    Some(found) => write!(f, "{condition} is {found:?}, expected ")?,
                    None => write!(f, "{condition} is missing, expected ")?,
                }
                for (position, value) in expected.iter().enumerate() {
                    write!(f, "{}{value:?}", if position > 0 { " or " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}
