//! Queries: a request that the policy decides, or a key with its own limits.

use std::borrow::Cow;

use crate::error::{QuotaError, QuotaErrorKind};
use crate::facts::Facts;
use crate::limit::{INLINE_RULE, Limit};
use crate::naming::unique_names;
use crate::plan::{Key, MAX_TAKES, Plan, PlanError, Take};
use crate::policy::{MatchedRule, PolicyPlan};
use crate::request::Request;
use crate::subject::Subject;
use crate::time::MAX_EXACT;

/// The input of a [`Limiter`](crate::Limiter): facts that the policy decides, or inline limits.
///
/// ```
/// use tollgate::{Facts, Query, Request};
///
/// let facts = Facts::of([("client", "c1")])?;
/// let query = Query::from(&facts).with_cost(3);
/// assert!(matches!(query, Query::ByPolicy(request) if request.cost() == 3));
/// # Ok::<(), tollgate::FactsError>(())
/// ```
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the common one, and short-lived"
)]
#[non_exhaustive]
pub enum Query<'a> {
    /// The policy selects the limits.
    ByPolicy(Request<'a>),
    /// The request brings its own limits; policy and overrides are ignored.
    Inline(Inline),
}

impl Query<'_> {
    /// The same query with another cost; 0 only peeks. A cost above a limit's capacity never passes.
    #[must_use]
    pub fn with_cost(self, cost: u64) -> Self {
        match self {
            Self::ByPolicy(request) => Self::ByPolicy(request.with_cost(cost)),
            Self::Inline(inline) => Self::Inline(Inline { cost: cost.min(MAX_EXACT), ..inline }),
        }
    }
}

/// The policy decides a request with these facts and cost 1.
impl<'a> From<&Facts<'a>> for Query<'a> {
    fn from(facts: &Facts<'a>) -> Self {
        Self::ByPolicy(Request::new(facts.clone()))
    }
}

impl<'a> From<Facts<'a>> for Query<'a> {
    fn from(facts: Facts<'a>) -> Self {
        Self::ByPolicy(Request::new(facts))
    }
}

impl<'a> From<Request<'a>> for Query<'a> {
    fn from(request: Request<'a>) -> Self {
        Self::ByPolicy(request)
    }
}

impl From<Inline> for Query<'_> {
    fn from(inline: Inline) -> Self {
        Self::Inline(inline)
    }
}

impl<'a> From<&Query<'a>> for Query<'a> {
    fn from(query: &Query<'a>) -> Self {
        query.clone()
    }
}

/// A key with its own limits, independent of the policy.
///
/// ```
/// use tollgate::{Query, Inline, Limit, Limiter, MemoryStore, Policy, Quota, Verb};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let limits = vec![Limit::token_bucket(Quota::per_minute(10))?];
/// let decision = limiter.check(Inline::new("", "user:1", limits, 2)?).await?;
/// assert_eq!((decision.rule(), decision.remaining()), ("inline", Some(8)));
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
    /// Creates a query for `cost` from each limit of `key`. An empty tenant means none.
    ///
    /// # Errors
    /// No limit, more than 16 limits, or two limits with the same name.
    pub fn new(
        tenant: impl AsRef<[u8]>,
        key: impl AsRef<[u8]>,
        limits: Vec<Limit>,
        cost: u64,
    ) -> Result<Self, QuotaError> {
        if limits.is_empty() || limits.len() > MAX_TAKES {
            return Err(QuotaError::built(
                QuotaErrorKind::Limits,
                format!("a request needs 1 to {MAX_TAKES} limits, not {}", limits.len()),
            ));
        }
        let limits = limits.into_iter().map(|limit| limit.in_rule(INLINE_RULE));
        let limits = unique_names(limits.collect::<Result<_, _>>()?)?;
        let subject = Subject::in_tenant(tenant, [key.as_ref()]);
        let key = String::from_utf8_lossy(key.as_ref()).into_owned();
        Ok(Self { key, subject, limits, cost })
    }

    /// Splits the query into its subject and limits.
    pub(crate) fn into_counters(self) -> (Subject, Vec<Limit>) {
        (self.subject, self.limits)
    }

    fn plan(&self) -> Plan<'_> {
        let take = |limit| Take::new(Key::new(&self.subject, limit), self.cost);
        Plan::of_distinct(self.limits.iter().map(take))
    }
}

/// A query with the limits that apply to it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResolvedQuery<'a> {
    /// The matching rules of the policy.
    Policy(PolicyPlan<'a>),
    /// The inline limits of the request.
    Inline(&'a Inline),
}

impl ResolvedQuery<'_> {
    pub(crate) fn plan(&self) -> Result<Plan<'_>, PlanError> {
        match self {
            Self::Policy(planned) => planned.plan(),
            Self::Inline(inline) => Ok(inline.plan()),
        }
    }

    /// The rules of the policy that match, in policy order.
    #[must_use]
    pub fn matched(&self) -> &[MatchedRule<'_>] {
        match self {
            Self::Policy(planned) => planned.matched(),
            Self::Inline(_) => &[],
        }
    }

    /// The rule to report if no limit applies.
    pub(crate) fn last_rule(&self) -> &str {
        match self {
            Self::Policy(planned) => planned.rule().name(),
            Self::Inline(_) => INLINE_RULE,
        }
    }

    /// The key that a matching rule counts, in readable form.
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
