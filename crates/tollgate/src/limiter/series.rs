//! Series: queries that are decided one after the other, as those of a pipeline or a batch.

use std::sync::Arc;
use std::time::Instant;

use super::{ActivePolicy, Limiter, LimiterError, Observer, Outcome};
use crate::plan::Verb;
use crate::query::Query;
use crate::store::Store;

/// Decides queries one after the other with the policy that was active at its start, and reads the clock once per decision:
/// a decision begins, for the observer, when the one before it ends.
///
/// ```
/// use tollgate::{Facts, Limiter, MemoryStore, Policy, Query, Verb};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let facts = Facts::of([("client", "c1")])?;
/// let mut series = limiter.series();
/// for remaining in [99, 98] {
///     let query = Query::from(&facts);
///     let read = series.decide(Verb::Take, &query, |outcome| outcome.decision.remaining()).await?;
///     assert_eq!(read, Some(remaining));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Series<'l, S, O: Observer = ()> {
    limiter: &'l Limiter<S, O>,
    policy: Arc<ActivePolicy<O::Handles>>,
    /// The end of the last decision; `None` if the observer does not measure time.
    since: Option<Instant>,
}

impl<S: Store, O: Observer> Limiter<S, O> {
    /// Begins a series of decisions with the active policy.
    pub fn series(&self) -> Series<'_, S, O> {
        Series { limiter: self, policy: self.active_policy(), since: self.now() }
    }
}

impl<S: Store, O: Observer> Series<'_, S, O> {
    /// Decides a query, as [`Limiter::decide`].
    ///
    /// # Errors
    /// As [`Limiter::decide`].
    pub async fn decide<T>(
        &mut self,
        verb: Verb,
        query: &Query<'_>,
        read: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        self.limiter.decide_since(&mut self.since, &self.policy, (verb, query.into()), read).await
    }
}
