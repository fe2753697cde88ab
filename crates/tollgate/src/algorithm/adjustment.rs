//! Adjustments: what the settlement of a reservation changes at one key.

use std::time::Duration;

use super::Reply;
use crate::time::{MAX_EXACT, saturating_micros};

/// A change of what an earlier take charged, once its final amount is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Adjustment {
    /// Gives back a part of a take, as far as it still counts. No effect on slots, which only their permit releases.
    GiveBack {
        /// Quota units, at most the cost of the take.
        amount: u64,
        /// Time since the take.
        age: Duration,
        /// [Deficit](super::Parameters::deficit) of a token bucket after the take, less all that others gave back since then.
        /// Ignored by the other algorithms.
        ///
        /// A bucket that was full since the take owes nothing for it any more. This number, and the refill since the
        /// take, limit what is given back to what the bucket cannot have refilled.
        deficit: u64,
    },
    /// Takes even if the limit is exceeded, down to a debt of one further full limit. Takes no slots.
    Overdraw {
        /// Quota units.
        amount: u64,
    },
}

/// The result of an [`Adjustment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Adjusted {
    /// The figures of the key afterwards; always allowed.
    pub reply: Reply,
    /// The amount that was given back or taken, in quota units. A token bucket rounds it up.
    pub amount: u64,
    /// The amount that a token bucket got back, in grains. 0 for the other algorithms.
    pub grains: u64,
}

/// What one algorithm changed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Change {
    pub(super) amount: u64,
    pub(super) grains: u64,
}

impl Change {
    pub(super) const fn of(amount: u64) -> Self {
        Self { amount, grains: 0 }
    }
}

/// The time of a take of this age.
pub(super) fn time_of(now: u64, age: Duration) -> u64 {
    now.saturating_sub(saturating_micros(age))
}

/// The amount that fits below a debt of one further full limit, within the exact numbers.
pub(super) fn room_for_debt(used: u64, limit: u64) -> u64 {
    limit.saturating_mul(2).min(MAX_EXACT).saturating_sub(used)
}
