//! Reservations of the inbound layer: an estimate at admission, settled with the final amounts after the response.

mod admission;
mod builder;
mod estimate;
mod final_amounts;
mod open;
mod request;
mod settings;

pub(super) use admission::admit;
pub use estimate::Estimate;
pub(super) use request::ReservedRequest;
pub(super) use settings::ReservationSettings;
