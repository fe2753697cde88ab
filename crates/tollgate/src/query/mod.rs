//! Queries: a request that the policy decides, or a key with its own limits.

mod inline;

pub use inline::{Inline, InlineLimits};

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
    /// The same query with another cost; 0 only peeks. A cost above a limit's capacity never passes.
    #[must_use]
    pub fn with_cost(self, cost: u64) -> Self {
        match self {
            Self::ByPolicy(request) => Self::ByPolicy(request.with_cost(cost)),
            Self::Inline(inline) => Self::Inline(inline.with_cost(cost)),
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
