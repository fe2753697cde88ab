//! Reservations: takes whose final amounts are known later.

use std::mem;
use std::sync::Arc;

use tollgate::reservation::{FinalCosts, ReservationToken, Settled};
use tollgate::{Query, ReservationTerms, ReserveOutcome, Timestamp};

use super::batch::UndeliveredResult;
use super::run_to_completion::RunToCompletion;
use super::service::Service;
use super::undelivered_permit::UndeliveredPermit;
use crate::error::{ApiError, ApiErrorKind};
use crate::node::NodeContext;
use crate::telemetry::Span;

const UNKNOWN: &str =
    "no reservation with this token: it is wrong, of another tenant, or its record has ended";

impl Service {
    /// Reserves the costs of a query, until they are settled. `encode` receives the outcome; a refusal is an outcome, not
    /// an error. If the id of the terms was used before, the outcome has the first reservation.
    ///
    /// # Errors
    ///
    /// `Conflict` if the id belongs to a reservation with other costs; otherwise as for [`check`](Self::check).
    pub async fn reserve<T>(
        &self,
        query: &Query<'_>,
        terms: &ReservationTerms,
        span: &mut Span,
        encode: impl FnOnce(&ReserveOutcome<'_, '_>) -> T,
    ) -> Result<T, ApiError> {
        reserve(self.node(), query, (terms, span), encode).await
    }

    /// As [`reserve`](Self::reserve), for a client that may disconnect before it receives the token, with which alone it
    /// could settle. Then the slots are released, and the estimate stays charged. A client that has sent an id can repeat
    /// the call, so its reservation stays as it is.
    pub(crate) async fn reserve_undelivered<T: Send + 'static>(
        &self,
        query: &Query<'_>,
        terms: ReservationTerms,
        span: &mut Span,
        encode: impl FnOnce(&ReserveOutcome<'_, '_>) -> T + Send + 'static,
    ) -> UndeliveredResult<T> {
        if terms.has_id() || !self.may_hold_slots(query) {
            return Ok((self.reserve(query, &terms, span, encode).await?, None));
        }
        let query = query.clone().into_owned();
        reserve_slots(Arc::clone(self.node()), query, (terms, span), encode).await
    }

    /// Settles a reservation with its final amounts. A repeated settlement changes nothing and returns the first outcome.
    /// `tenant: None` does not compare the tenant.
    ///
    /// # Errors
    ///
    /// `NotFound` if no reservation has this token, or it is of another tenant. `Unavailable` if the store cannot be reached.
    pub async fn settle(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Settled, ApiError> {
        let settled = self.settle_and_count(token, tenant, finals).await?;
        settled.ok_or_else(|| ApiError::new(ApiErrorKind::NotFound, UNKNOWN).at("reservation"))
    }

    /// Cancels a reservation: settles it with costs of 0. Returns whether it was open.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the store cannot be reached.
    pub async fn cancel(&self, token: &ReservationToken) -> Result<bool, ApiError> {
        let settled = self.settle_and_count(token, None, &FinalCosts::cancelled()).await?;
        Ok(settled.is_some_and(|settled| !settled.is_repeated))
    }

    async fn settle_and_count(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Option<Settled>, ApiError> {
        let settled = self.node().limiter().settle(token, tenant, finals).await;
        let settled = settled.map_err(|error| ApiError::from(&error))?;
        if let Some(settled) = &settled {
            self.node().metrics().settlements().count(settled);
        }
        Ok(settled)
    }

    /// Extends a reservation and its slots by its time to live from now. Returns the new expiry; `None` if it is unknown,
    /// settled, or has lost a slot.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the store cannot be reached.
    pub async fn renew_reservation(
        &self,
        token: &ReservationToken,
    ) -> Result<Option<Timestamp>, ApiError> {
        let renewed = self.node().limiter().renew_reservation(token, None).await;
        renewed.map_err(|error| (&error).into())
    }
}

/// Reserves. Records a refusal for the node report, and the verdict in the span.
async fn reserve<T>(
    node: &NodeContext,
    query: &Query<'_>,
    (terms, span): (&ReservationTerms, &mut Span),
    encode: impl FnOnce(&ReserveOutcome<'_, '_>) -> T,
) -> Result<T, ApiError> {
    let read = |reserved: &ReserveOutcome<'_, '_>| {
        // A repeated call decides nothing.
        if !reserved.is_repeated {
            node.refused().note(query, reserved.outcome);
            span.decided(reserved.outcome);
        }
        encode(reserved)
    };
    node.limiter().reserve_with(query, terms, read).await.map_err(|error| (&error).into())
}

/// Reserves for a query that may take slots. If the caller is dropped, the reservation is made nevertheless, and its
/// slots are released.
async fn reserve_slots<T: Send + 'static>(
    node: Arc<NodeContext>,
    query: Query<'static>,
    (terms, span): (ReservationTerms, &mut Span),
    encode: impl FnOnce(&ReserveOutcome<'_, '_>) -> T + Send + 'static,
) -> UndeliveredResult<T> {
    let mut own_span = mem::replace(span, Span::none());
    let work = async move {
        let with_permit = |reserved: &ReserveOutcome<'_, '_>| {
            (encode(reserved), UndeliveredPermit::of(&node, reserved.outcome))
        };
        let reply = reserve(&node, &query, (&terms, &mut own_span), with_permit).await;
        (reply, own_span)
    };
    let (reply, own_span) = RunToCompletion::new(work).await;
    *span = own_span;
    reply
}
