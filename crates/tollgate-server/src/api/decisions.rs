//! Decision calls: check, peek, refund and explain.

use std::mem;
use std::sync::Arc;

use tollgate::policy::RuleOutcome;
use tollgate::{Distributed, Explanation, FallbackStore, Outcome, Override, Policy, Query, Verb};

use super::run_to_completion::RunToCompletion;
use super::service::Service;
use super::undelivered_permit::UndeliveredPermit;
use crate::error::ApiError;
use crate::node::overrides::Client;
use crate::node::report::RefusedKeys;
use crate::node::{NodeContext, NodeSeries};
use crate::telemetry::Span;

/// The explanation of a decision, with the overrides of its client.
#[derive(Debug)]
pub(crate) struct ExplainReply<'e, 'o, 'p> {
    pub(crate) explanation: &'e Explanation<'o, 'p>,
    /// The maximum distribution of this node, which caps that of the rules.
    pub(crate) max_distribution: Distributed,
    /// What this node has leased of each take and not spent.
    pub(crate) leased: Vec<u64>,
    pub(crate) client: Option<&'e Client>,
    /// The override that applies to the first matched rule that has one.
    pub(crate) applied: Option<&'e Override>,
    /// All overrides of the client.
    pub(crate) overrides: &'e [Arc<Override>],
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
        self.series().decide(verb, query, span, encode).await
    }

    /// Begins a series of decisions, such as those of a pipeline.
    pub(crate) fn series(&self) -> DecisionSeries<'_> {
        DecisionSeries::new(self.node())
    }

    /// Returns whether a check may take slots, whose permit has to be delivered.
    pub(crate) fn may_hold_slots(&self, query: &Query<'_>) -> bool {
        self.node().limiter().may_hold_slots(query)
    }

    /// As [`check`](Self::check), for a client that may disconnect before it receives the permit of its slots: the
    /// returned guard releases them, and a check whose future is dropped releases the slots that it is granted later.
    pub(crate) async fn check_undelivered<T: Send + 'static>(
        &self,
        query: &Query<'_>,
        span: &mut Span,
        encode: impl FnOnce(&Outcome<'_, '_>) -> T + Send + 'static,
    ) -> Result<(T, Option<UndeliveredPermit>), ApiError> {
        let node = self.node();
        if !self.may_hold_slots(query) {
            let reply = self.decide(Verb::Take, query, span, encode).await?;
            return Ok((reply, None));
        }
        // Boxed, so that it does not enlarge the future of every check.
        Box::pin(check_slots(Arc::clone(node), query.clone().into_owned(), span, encode)).await
    }

    /// Explains what a check would decide now: rules, keys, counts and the overrides of the client. Consumes no quota.
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
        let subject = client.as_ref().map(Client::subject);
        let overrides = subject.as_ref().map(|subject| active.overrides().get(subject));
        let reply = limiter.explain(query, |explanation| {
            let applied = explanation.tried.iter().find_map(|tried| {
                let rule = active.policy().rule(&tried.rule);
                let rule = rule.filter(|_| tried.outcome == RuleOutcome::Matched)?;
                active.overrides().applying(subject.as_ref()?, rule).map(|applied| &**applied)
            });
            let takes = explanation.outcome.plan.takes().iter();
            encode(&ExplainReply {
                explanation,
                max_distribution,
                leased: takes.map(|take| self.node().backend().leased(&take.key())).collect(),
                client: client.as_ref(),
                applied,
                overrides: overrides.unwrap_or_default(),
                policy: active.policy(),
            })
        });
        reply.await.map_err(|error| (&error).into())
    }
}

/// Decides queries one after the other by one policy.
#[derive(Debug)]
pub(crate) struct DecisionSeries<'s> {
    refused: &'s RefusedKeys,
    series: NodeSeries<'s>,
}

impl<'s> DecisionSeries<'s> {
    fn new(node: &'s NodeContext) -> Self {
        Self { refused: node.refused(), series: node.limiter().series() }
    }

    /// Decides a query. Records refused checks for the node report, and the verdict in the span.
    pub(crate) async fn decide<T>(
        &mut self,
        verb: Verb,
        query: &Query<'_>,
        span: &mut Span,
        encode: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, ApiError> {
        let refused = self.refused;
        let encode = |outcome: &Outcome<'_, '_>| {
            if verb == Verb::Take {
                refused.note(query, outcome);
            }
            span.decided(outcome);
            encode(outcome)
        };
        self.series.decide(verb, query, encode).await.map_err(|error| (&error).into())
    }
}

/// Checks a query that may take slots. If the caller is dropped, the check goes on, and its output is dropped, which
/// releases the slots.
async fn check_slots<T: Send + 'static>(
    node: Arc<NodeContext>,
    query: Query<'static>,
    span: &mut Span,
    encode: impl FnOnce(&Outcome<'_, '_>) -> T + Send + 'static,
) -> Result<(T, Option<UndeliveredPermit>), ApiError> {
    let mut own_span = mem::replace(span, Span::none());
    let check = async move {
        let with_permit =
            |outcome: &Outcome<'_, '_>| (encode(outcome), UndeliveredPermit::of(&node, outcome));
        let mut series = DecisionSeries::new(&node);
        let reply = series.decide(Verb::Take, &query, &mut own_span, with_permit).await;
        (reply, own_span)
    };
    let (reply, own_span) = RunToCompletion::new(check).await;
    *span = own_span;
    reply
}
