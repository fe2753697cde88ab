//! What is asked of a limiter: a request to be decided by policy, or one with limits of its own.

use std::borrow::Cow;

use crate::error::{QuotaError, QuotaErrorKind};
use crate::limit::{INLINE_RULE, Limit};
use crate::naming::unique_names;
use crate::plan::{Key, MAX_TAKES, Plan, PlanError, Take};
use crate::policy::{MatchedRule, PolicyPlan};
use crate::request::Request;
use crate::subject::Subject;

/// A question for a [`Limiter`](crate::Limiter).
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and short-lived")]
#[non_exhaustive]
pub enum Query<'a> {
    /// The policy says which limits apply.
    ByPolicy(Request<'a>),
    /// The request brings its limits, and the policy has no say.
    Inline(Inline),
}

/// A key and the limits to hold it to, whatever the policy says.
///
/// ```
/// use tollgate::{Query, Inline, Limit, Limiter, MemoryStore, Policy, Quota, Verb};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let limits = vec![Limit::token_bucket(Quota::per_minute(10))?];
/// let asked = Query::Inline(Inline::new("", "user:1", limits, 2)?);
/// let told = limiter.decide(Verb::Take, &asked, |outcome| {
///     (outcome.rule().to_owned(), outcome.decision.remaining())
/// });
/// assert_eq!(told.await?, ("inline".to_owned(), Some(8)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Inline {
    key: String,
    subject: Subject,
    limits: Vec<Limit>,
    cost: u64,
}

impl Inline {
    /// So much of each of these limits, for this key of this tenant (or of none, if empty).
    ///
    /// # Errors
    /// No limit, more than 16, or two of the same name.
    pub fn new(
        tenant: impl AsRef<[u8]>,
        key: impl AsRef<[u8]>,
        limits: Vec<Limit>,
        cost: u64,
    ) -> Result<Self, QuotaError> {
        if limits.is_empty() || limits.len() > MAX_TAKES {
            return Err(QuotaError::built(
                QuotaErrorKind::Limits,
                format!("1 to {MAX_TAKES} limits are wanted, not {}", limits.len()),
            ));
        }
        let limits = limits.into_iter().map(|limit| limit.in_rule(INLINE_RULE));
        let limits = unique_names(limits.collect::<Result<_, _>>()?)?;
        let subject = Subject::in_tenant(tenant, [key.as_ref()]);
        let key = String::from_utf8_lossy(key.as_ref()).into_owned();
        Ok(Self { key, subject, limits, cost })
    }

    /// Whom it counts, and by what: its counters, whatever is taken from them.
    pub(crate) fn into_counters(self) -> (Subject, Vec<Limit>) {
        (self.subject, self.limits)
    }

    fn plan(&self) -> Plan<'_> {
        let take = |limit| Take::new(Key::new(&self.subject, limit), self.cost);
        Plan::of_distinct(self.limits.iter().map(take))
    }
}

/// What applies to a question.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResolvedQuery<'a> {
    /// These rules of the policy.
    Policy(PolicyPlan<'a>),
    /// The limits that came with it.
    Inline(&'a Inline),
}

impl ResolvedQuery<'_> {
    pub(crate) fn plan(&self) -> Result<Plan<'_>, PlanError> {
        match self {
            Self::Policy(planned) => planned.plan(),
            Self::Inline(inline) => Ok(inline.plan()),
        }
    }

    /// The rules of the policy that apply, in their order.
    #[must_use]
    pub fn matched(&self) -> &[MatchedRule<'_>] {
        match self {
            Self::Policy(planned) => planned.matched(),
            Self::Inline(_) => &[],
        }
    }

    /// The rule to name when no limit decided.
    pub(crate) fn last_rule(&self) -> &str {
        match self {
            Self::Policy(planned) => planned.rule().name(),
            Self::Inline(_) => INLINE_RULE,
        }
    }

    /// Whom a rule that applies counts, as people call it.
    pub(crate) fn key_of(&self, rule: &str) -> Cow<'_, str> {
        match self {
            Self::Inline(inline) => Cow::Borrowed(&inline.key),
            Self::Policy(planned) => {
                let matched =
                    planned.matched().iter().find(|matched| matched.rule().name() == rule);
                matched.map_or(Cow::Borrowed(""), MatchedRule::key)
            }
        }
    }
}
