//! Why a request is decided by the rules it is.

use std::borrow::Cow;
use std::fmt;

use super::rule::{Outcome, Rule};
use super::view::View;

/// Every rule that was tried for a request, in order, and what came of it.
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
/// assert_eq!(trace.to_string(), "search: path is \"/\", not \"/search\"\ndefault: matches\n");
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
    /// Its name.
    pub rule: String,
    /// What came of it.
    pub outcome: RuleOutcome,
}

/// What came of trying a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleOutcome {
    /// It is for this request.
    Matched,
    /// This is the first of its conditions that does not hold.
    Failed {
        /// The condition, such as `path` or `headers.x-plan`.
        condition: String,
        /// The values it may have, as written in the policy.
        expected: Vec<String>,
        /// The value the fact has, as far as it is text; none if it is not known. Of an API key, its
        /// digest.
        found: Option<String>,
    },
    /// It is keyed by a fact that the request lacks, and skips such requests.
    MissingFact {
        /// The fact.
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
        outcome: Outcome<'_>,
        view: &View<'_, '_>,
        is_default: bool,
    ) {
        let lossy = |value: Cow<'_, [u8]>| String::from_utf8_lossy(&value).into_owned();
        let outcome = match outcome {
            Outcome::Matches => RuleOutcome::Matched,
            Outcome::Fails(condition) => RuleOutcome::Failed {
                condition: condition.name().to_owned(),
                expected: condition.alternatives().iter().map(ToString::to_string).collect(),
                found: view.looked_at(condition.fact()).map(lossy),
            },
            Outcome::Lacks(fact) => RuleOutcome::MissingFact { fact: fact.to_string() },
        };
        self.ends_with_default = is_default && outcome == RuleOutcome::Matched;
        self.tried.push(TriedRule { rule: rule.name().to_owned(), outcome });
    }

    /// Every rule that was tried, in order; the default is the last if it came to that.
    #[must_use]
    pub fn tried(&self) -> &[TriedRule] {
        &self.tried
    }

    /// The names of the rules that apply.
    pub fn matched(&self) -> impl Iterator<Item = &str> {
        let matched = self.tried.iter().filter(|tried| tried.outcome == RuleOutcome::Matched);
        matched.map(|tried| tried.rule.as_str())
    }

    /// Whether no rule matched and the default applies.
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
            Self::Matched => f.write_str("matches"),
            Self::MissingFact { fact } => write!(f, "skipped, since {fact} is not known"),
            Self::Failed { condition, expected, found } => {
                match found {
                    Some(found) => write!(f, "{condition} is {found:?}, not ")?,
                    None => write!(f, "{condition} is not known, wanted ")?,
                }
                for (place, value) in expected.iter().enumerate() {
                    write!(f, "{}{value:?}", if place > 0 { " or " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}
