//! Queries: a request that the policy decides, or a key with its own limits.

mod inline;

pub use inline::{Inline, InlineLimits};

use crate::costs::Costs;
#[cfg(feature = "policy")]
use crate::request::RequestView;
use crate::request::{Facts, Request};

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
    /// The same query with another cost in requests, and 0 of every other unit; 0 only peeks. A cost above a limit's
    /// capacity never passes.
    #[must_use]
    pub fn with_cost(self, cost: u64) -> Self {
        self.with_costs(Costs::requests(cost))
    }

    /// The same query with other costs.
    ///
    /// ```
    /// use tollgate::{Costs, Facts, Query};
    ///
    /// let query = Query::from(Facts::of([("client", "c1")])?);
    /// let query = query.with_costs(Costs::of([("tokens", 1800), ("requests", 1)])?);
    /// assert!(matches!(query, Query::ByPolicy(request) if !request.costs().is_zero()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_costs(self, costs: Costs) -> Self {
        match self {
            Self::ByPolicy(request) => Self::ByPolicy(request.with_costs(costs)),
            Self::Inline(inline) => Self::Inline(inline.with_costs(costs)),
        }
    }

    /// The same query without the default limit: if no rule of the policy matches, no limit applies. Inline limits do
    /// not change. See [`Request::without_default_limit`].
    #[must_use]
    pub fn without_default_limit(self) -> Self {
        match self {
            Self::ByPolicy(request) => Self::ByPolicy(request.without_default_limit()),
            Self::Inline(inline) => Self::Inline(inline),
        }
    }

    /// The costs.
    #[must_use]
    pub const fn costs(&self) -> &Costs {
        match self {
            Self::ByPolicy(request) => request.costs(),
            Self::Inline(inline) => inline.costs(),
        }
    }

    /// The tenant of the request, else that of its policy; empty for none.
    #[cfg(feature = "policy")]
    pub(crate) fn tenant(&self, of_policy: &str) -> Box<[u8]> {
        match self {
            Self::ByPolicy(request) => {
                request.facts().get("tenant").unwrap_or(of_policy.as_bytes()).into()
            }
            Self::Inline(inline) => inline.tenant(),
        }
    }

    /// Copies the query, so that it borrows nothing.
    ///
    /// ```
    /// use tollgate::{Facts, Query};
    ///
    /// let kept: Query<'static> = {
    ///     let header = String::from("c1");
    ///     Query::from(Facts::of([("client", &header)])?).with_cost(3).into_owned()
    /// };
    /// assert!(matches!(kept, Query::ByPolicy(request) if request.cost() == 3));
    /// # Ok::<(), tollgate::FactsError>(())
    /// ```
    #[must_use]
    pub fn into_owned(self) -> Query<'static> {
        match self {
            Self::ByPolicy(request) => Query::ByPolicy(request.into_owned()),
            Self::Inline(inline) => Query::Inline(inline),
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

/// A borrowed query.
#[cfg(feature = "policy")]
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueryView<'q, 'r> {
    Request(RequestView<'q, 'r>),
    Inline(&'q Inline),
}

#[cfg(feature = "policy")]
impl<'q, 'r> From<&'q Query<'r>> for QueryView<'q, 'r> {
    fn from(query: &'q Query<'r>) -> Self {
        match query {
            Query::ByPolicy(request) => Self::Request(request.into()),
            Query::Inline(inline) => Self::Inline(inline),
        }
    }
}
