//! Reservations: takes whose final amounts are known later.
//!
//! A caller reserves an estimate and settles with the actual amounts. Until then the estimate counts. The store keeps a
//! [`Record`] of each reservation: what it took from which limits, and after the settlement what became of it.
//! Everything that is settled comes from the record; the caller has only a [`ReservationToken`].

mod encoding;
mod given_back;
mod record;
mod settlement;
mod token;

pub use given_back::GivenBack;
pub use record::{
    DEFAULT_RESERVATION_TTL, Draft, MAX_RESERVATION_TTL, Record, Reserved, ReservedTake,
    TakenAmount,
};
pub use settlement::{FinalCosts, LimitState, Settled, TakeOutcome, UnitOutcome};
pub use token::{ReservationToken, TokenError};
