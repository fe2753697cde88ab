//! What clients hold until they give it back: the slots of a check, or a reservation.

use tollgate::reservation::ReservationToken;
use tollgate::{Permit, Timestamp};

use super::service::Service;
use crate::error::ApiError;

/// A handle that a client can release and renew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    /// The concurrency slots of a check.
    Permit(Permit),
    /// A reservation, with its slots.
    Reservation(ReservationToken),
}

impl Service {
    /// Releases slots, or cancels a reservation. Returns whether there was anything to release.
    pub(crate) async fn release_held(&self, held: &Held) -> Result<bool, ApiError> {
        match held {
            Held::Permit(permit) => self.release(permit).await,
            Held::Reservation(token) => self.cancel(token).await,
        }
    }

    /// Extends slots or a reservation by their full lifetime from now. Returns the new expiry; `None` if there was
    /// nothing to renew.
    pub(crate) async fn renew_held(&self, held: &Held) -> Result<Option<Timestamp>, ApiError> {
        match held {
            Held::Permit(permit) => self.renew(permit).await,
            Held::Reservation(token) => self.renew_reservation(token).await,
        }
    }
}
