//! Decision calls: check, peek, refund, batch and explain.

use futures_util::future::join_all;
use tollgate::{Distributed, Explanation, FallbackStore, Outcome, Override, Policy, Query, Verb};

use super::service::Service;
use crate::error::ApiError;
use crate::node::overrides::Client;
use crate::telemetry::Span;

/// Maximum number of queries in a batch.
pub const MAX_BATCH: usize = 1000;

/// The explanation of a decision, with the override of its client.
#[derive(Debug)]
pub(crate) struct ExplainReply<'e, 'o, 'p> {
    pub(crate) explanation: &'e Explanation<'o, 'p>,
    /// The maximum distribution of this node, which caps that of the rules.
    pub(crate) max_distribution: Distributed,
    pub(crate) override_: Option<(&'e Client, &'e Override)>,
    pub(crate) policy: &'e Policy,
}

impl Service {
    /// Decides a query and consumes quota if it is allowed. `encode` receives the outcome; a refusal is an outcome, not
    /// an error.
    ///
    /// # Errors
    ///
    /// `Invalid` if the query does not fit the policy, `Unavailable` or `Incompatible` if the store cannot decide and the
    /// rule does not say how to go on without it.
    pub async fn check<T>(
        &self,
        query: &Query<'_>,
        span: &mut Span,
        encode: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, ApiError> {
        self.decide(Verb::Take, query, span, encode).await
    }

    /// Decides a query without consuming quota.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub async fn peek<T>(
        &self,
        query: &Query<'_>,
        span: &mut Span,
        encode: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, ApiError> {
        self.decide(Verb::Peek, query, span, encode).await
    }

    /// Returns quota, never above full. The outcome is the state after the refund.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub async fn refund<T>(
        &self,
        query: &Query<'_>,
        span: &mut Span,
        encode: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, ApiError> {
        self.decide(Verb::Refund, query, span, encode).await
    }

    /// Decides a query. Records refused checks for the node report, and the verdict in the span.
    pub(crate) async fn decide<T>(
        &self,
        verb: Verb,
        query: &Query<'_>,
        span: &mut Span,
        encode: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, ApiError> {
        let encode = |outcome: &Outcome<'_, '_>| {
            if verb == Verb::Take {
                self.node().refused().note(query, outcome);
            }
            span.decided(outcome);
            encode(outcome)
        };
        self.node().limiter().decide(verb, query, encode).await.map_err(|error| (&error).into())
    }

    /// Checks up to [`MAX_BATCH`] queries independently. The results are in the order of the queries; a query that could
    /// not be decoded keeps its error.
    ///
    /// # Errors
    ///
    /// `Invalid` if there are too many queries.
    pub async fn batch<T>(
        &self,
        queries: Vec<Result<Query<'_>, ApiError>>,
        encode: impl Fn(&Outcome<'_, '_>) -> T,
    ) -> Result<Vec<Result<T, ApiError>>, ApiError> {
        if queries.len() > MAX_BATCH {
            let detail = format!("has {} items; the maximum is {MAX_BATCH}", queries.len());
            return Err(ApiError::invalid(detail).at("requests"));
        }
        let decide = async |query: Result<Query<'_>, ApiError>| {
            self.check(&query?, &mut Span::none(), |outcome| encode(outcome)).await
        };
        // With Redis, items are decided concurrently, so that they share calls and the batch takes about as long as one
        // item.
        if self.node().backend().redis().is_some() {
            return Ok(join_all(queries.into_iter().map(decide)).await);
        }
        let mut results = Vec::with_capacity(queries.len());
        for query in queries {
            results.push(decide(query).await);
        }
        Ok(results)
    }

    /// Explains what a check would decide now: rules, keys, counts and the override of the client. Consumes no quota.
    pub(crate) async fn explain<T>(
        &self,
        query: &Query<'_>,
        encode: impl FnOnce(&ExplainReply<'_, '_, '_>) -> T,
    ) -> Result<T, ApiError> {
        let limiter = self.node().limiter();
        let fallback = self.node().backend().fallback();
        let max_distribution = fallback.map_or(Distributed::On, FallbackStore::max_distribution);
        let active = limiter.active_policy();
        let client = Client::of_query(query, active.policy());
        let override_ = client
            .as_ref()
            .and_then(|client| Some((client, &**active.overrides().get(&client.subject())?)));
        let reply = limiter.explain(query, |explanation| {
            encode(&ExplainReply {
                explanation,
                max_distribution,
                override_,
                policy: active.policy(),
            })
        });
        reply.await.map_err(|error| (&error).into())
    }
}
