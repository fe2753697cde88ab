//! Reservations: takes whose final amount is known later.

use std::collections::BTreeMap;

use num_rational::BigRational;
use num_traits::Zero;

use super::Model;
use crate::spec::LimitSpec;

/// The reservations of a key, by number.
pub(super) type Reservations = BTreeMap<u64, Reservation>;

/// A take whose final amount is known later.
#[derive(Debug, Clone)]
pub(super) struct Reservation {
    pub(super) cost: u64,
    pub(super) taken: Taken,
    pub(super) settlement: Option<Settlement>,
}

/// What a reservation knows of its take.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) at: u64,
    pub(super) note: Note,
}

/// What a token bucket notes after the take of a reservation.
#[derive(Debug, Clone)]
pub(super) struct Note {
    /// Tokens missing in the bucket.
    pub(super) missing: BigRational,
    pub(super) given_back: GivenBack,
}

/// Tokens that settlements gave back to a bucket, all together. A sum that exceeds 2^53 grains begins again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenBack {
    /// How many times the sum began again.
    pub(super) restarts: u64,
    pub(super) total: BigRational,
}

impl Default for GivenBack {
    fn default() -> Self {
        Self { restarts: 0, total: BigRational::zero() }
    }
}

impl Default for Note {
    fn default() -> Self {
        Self { missing: BigRational::zero(), given_back: GivenBack::default() }
    }
}

/// What the first settlement of a reservation did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settlement {
    pub(super) given_back: u64,
    pub(super) uncollected: u64,
}

/// Returns what a reservation notes of a take that was just made.
pub(super) fn note<M: Model>(model: &M, spec: &LimitSpec, now: u64) -> Note {
    let mut settled = model.clone();
    settled.settle(spec, now);
    settled.note()
}

/// Changes a take to its final amount.
pub(super) fn settle<M: Model>(
    model: &mut M,
    spec: &LimitSpec,
    now: u64,
    (reservation, amount): (&Reservation, u64),
) -> Settlement {
    let (lower, higher) =
        (reservation.cost.saturating_sub(amount), amount.saturating_sub(reservation.cost));
    let mut settled = model.clone();
    settled.settle(spec, now);
    let given_back = match lower {
        0 => 0,
        _ => settled.give_back(spec, now, lower, &reservation.taken),
    };
    let taken = settled.overdraw(spec, now, higher);
    if given_back > 0 || taken > 0 {
        *model = settled;
    }
    Settlement { given_back, uncollected: higher - taken }
}
