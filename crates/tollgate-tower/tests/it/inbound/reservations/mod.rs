//! Reservations: an estimate at admission, settled after the response.

mod delayed;
mod errors;
mod fixture;
mod settlement;
mod slots;
mod streams;
