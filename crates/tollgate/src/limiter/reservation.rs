//! The handle of a reservation.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use super::reserve::{ReservationTerms, ReserveError, ReserveOutcome};
use super::{Limiter, LimiterError, Observer};
use crate::costs::Costs;
use crate::decision::OwnedDecision;
use crate::query::Query;
use crate::reservation::{FinalCosts, ReservationToken, Settled};
use crate::store::Store;
use crate::time::Timestamp;

impl<S: Store, O: Observer> Limiter<S, O> {
    /// Reserves an estimate, which counts until the [`Reservation`] is settled with the actual amounts.
    ///
    /// ```
    /// use tollgate::{Costs, Inline, Limit, Limiter, MemoryStore, Policy, Quota, Unit};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let limit = Limit::token_bucket(Quota::per_minute(90_000))?.in_unit(Unit::new("tokens")?)?;
    /// let key = Inline::new("", "key:1", vec![limit], 1)?;
    /// let estimate = Costs::requests(1).and("tokens", 1800)?;
    /// let reservation = limiter.reserve(key).costs(estimate).await?;
    /// // … the work …
    /// let settled = reservation.settle(Costs::of([("tokens", 420)])?).await?;
    /// assert_eq!(settled.units[1].charged, 420);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve<'q>(&self, query: impl Into<Query<'q>>) -> ReserveCall<'_, 'q, S, O> {
        ReserveCall { limiter: self, query: query.into(), terms: Ok(ReservationTerms::default()) }
    }
}

/// A reservation to make: set its costs, its time to live and an id, then `.await` it.
#[must_use = "a call does nothing until it is awaited"]
pub struct ReserveCall<'l, 'q, S, O: Observer = ()> {
    limiter: &'l Limiter<S, O>,
    query: Query<'q>,
    terms: Result<ReservationTerms, ReserveError>,
}

impl<S: Store, O: Observer> ReserveCall<'_, '_, S, O> {
    /// Sets the estimate. The default is that of the query, one request for facts.
    pub fn costs(self, costs: Costs) -> Self {
        Self { query: self.query.with_costs(costs), ..self }
    }

    /// Sets how long the reservation holds its slots; see [`ReservationTerms::ttl`].
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { terms: self.terms.and_then(|terms| terms.ttl(ttl)), ..self }
    }

    /// Sets an id of the caller; see [`ReservationTerms::id`].
    pub fn id(self, id: &str) -> Self {
        Self { terms: self.terms.and_then(|terms| terms.id(id)), ..self }
    }
}

impl<S, O: Observer> fmt::Debug for ReserveCall<'_, '_, S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReserveCall")
            .field("query", &self.query)
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

impl<'l, 'q: 'l, S: Store, O: Observer> IntoFuture for ReserveCall<'l, 'q, S, O> {
    type Output = Result<Reservation<'l, S, O>, ReserveError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'l>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { limiter, query, terms } = self;
        Box::pin(async move {
            let (decision, made) = limiter.reserve_with(&query, &terms?, read).await?;
            let Some((token, expires_at)) = made else {
                return Err(ReserveError::Refused(Box::new(decision)));
            };
            Ok(Reservation { limiter, token, is_open: true, decision, expires_at })
        })
    }
}

type Made = Option<(ReservationToken, Timestamp)>;

/// A function, because a path to the method is not general enough over the lifetimes of an outcome.
fn read(outcome: &ReserveOutcome<'_, '_>) -> (OwnedDecision, Made) {
    let made = outcome.record.map(|record| (record.token(), record.expires_at()));
    (outcome.outcome.to_owned_decision(), made)
}

/// A reservation to settle. If it is dropped before, the estimate stays charged, its slots expire, and a warning is logged:
/// the amounts that were used are not known.
#[must_use = "an unsettled reservation stays charged"]
pub struct Reservation<'l, S, O: Observer = ()> {
    limiter: &'l Limiter<S, O>,
    token: ReservationToken,
    /// Whether it still has to be settled.
    is_open: bool,
    decision: OwnedDecision,
    expires_at: Timestamp,
}

impl<S: Store, O: Observer> Reservation<'_, S, O> {
    /// The decision about the estimate.
    pub const fn decision(&self) -> &OwnedDecision {
        &self.decision
    }

    /// The store's time at which the slots expire.
    #[must_use]
    pub const fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    /// Settles the reservation: units that `used` does not name keep their estimate.
    ///
    /// # Errors
    /// The store failed, or the reservation has ended long ago.
    pub async fn settle(self, used: Costs) -> Result<Settled, SettleError> {
        self.finish(FinalCosts::of(used)).await
    }

    /// Cancels the reservation: nothing was used.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub async fn cancel(self) -> Result<Settled, SettleError> {
        self.finish(FinalCosts::cancelled()).await
    }

    async fn finish(mut self, finals: FinalCosts) -> Result<Settled, SettleError> {
        self.is_open = false;
        let settled = self.limiter.settle(&self.token, None, &finals).await?;
        settled.ok_or(SettleError::Unknown)
    }

    /// Extends the reservation and its slots by its time to live from now. Returns the new expiry, or `None` if it has
    /// lost a slot.
    ///
    /// # Errors
    /// The store failed.
    pub async fn renew(&mut self) -> Result<Option<Timestamp>, LimiterError> {
        let renewed = self.limiter.renew_reservation(&self.token, None).await?;
        self.expires_at = renewed.unwrap_or(self.expires_at);
        Ok(renewed)
    }

    /// Returns the token, with which any process that shares the store can settle the reservation.
    #[must_use]
    pub fn detach(mut self) -> ReservationToken {
        self.is_open = false;
        self.token
    }
}

/// Why a reservation was not settled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
    /// The reservation has ended long ago.
    #[error("the reservation is not known any more")]
    Unknown,
    /// The store failed.
    #[error(transparent)]
    Limiter(#[from] LimiterError),
}

impl<S, O: Observer> fmt::Debug for Reservation<'_, S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("decision", &self.decision)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl<S, O: Observer> Drop for Reservation<'_, S, O> {
    fn drop(&mut self) {
        if self.is_open {
            tracing::warn!(
                rule = self.decision.rule(),
                "a reservation was dropped without being settled: its estimate stays charged"
            );
        }
    }
}
