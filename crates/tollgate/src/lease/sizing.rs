//! Sizes of leases: how much of the demand of a plan one lease covers, and for how long.

use std::time::Duration;

use crate::plan::{Plan, Take};

/// The whole demand within the time of a lease.
const WHOLE: u64 = 1024;

/// Maximum part. A lease that covers more would often end before it is spent, even if the demand is steady.
const MAX_PART: u64 = WHOLE / 2;

/// Minimum part. A smaller lease saves few calls, and little would be lost with it.
const MIN_PART: u64 = WHOLE / 24;

/// Part of the first lease.
const FIRST_PART: u64 = WHOLE / 8;

/// Number of decisions of one plan within the hold of a lease from which on it is leased. Below it, a lease would save few
/// calls and could strand quota.
pub(super) const MIN_DECISIONS: u64 = 16;

/// Returns whether a lease of these amounts saves a call: it pays the plan at least twice.
pub(super) fn is_worth_requesting(plan: &Plan<'_>, amounts: &[u64]) -> bool {
    let is_worth = |(take, amount): (&Take<'_>, &u64)| *amount >= take.cost().saturating_mul(2);
    plan.takes().iter().zip(amounts).all(is_worth)
}

/// The part of a node's demand within the time of a lease that one lease covers.
///
/// What a node does not spend is lost, so the part depends on what happened to the last leases. It grows by a 64th with
/// each lease that is spent, and falls to a quarter if nothing of a lease is. A node with steady demand comes to need about two calls
/// in the time of a lease. Where demand moves from node to node every second, a lease comes to be worth a few hundredths
/// of a second, so that little is lost with each move.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeasePart(u64);

impl LeasePart {
    pub(super) const fn new() -> Self {
        Self(FIRST_PART)
    }

    /// Begins with the largest part, for leases of a fixed size.
    pub(super) const fn largest() -> Self {
        Self(MAX_PART)
    }

    /// Returns the amount to request after a node took `recent` within the time of a lease.
    pub(super) const fn of(self, recent: u64) -> u64 {
        recent.saturating_mul(self.0) / WHOLE
    }

    /// Returns the amount of a lease of at most `max`: less after leases that ended unspent.
    pub(super) const fn of_fixed(self, max: u64) -> u64 {
        max.saturating_mul(self.0) / MAX_PART
    }

    /// A lease was spent.
    pub(super) fn spent(&mut self) {
        self.0 = MAX_PART.min(self.0 + (self.0 / 64).max(1));
    }

    /// A lease ended with this much left.
    pub(super) fn ended(&mut self, left: u64, granted: u64) {
        let cut = u128::from(self.0) * 3 * u128::from(left) / (4 * u128::from(granted.max(1)));
        let cut = u64::try_from(cut).unwrap_or(self.0);
        self.0 = MIN_PART.max(self.0.saturating_sub(cut));
    }
}

/// The hold of the next lease of a plan: a quarter of the full hold at first, and twice as much after each lease that expired
/// before it was spent.
///
/// A bucket gives up what it refills within the hold of a lease, as far as its deficit does not cover it. The deficit of a
/// key that has just become busy is small, so a long hold would cost quota, and a busy key spends its leases soon.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextHold {
    hold: Duration,
    full: Duration,
}

impl NextHold {
    pub(super) fn first_of(full: Duration) -> Self {
        Self { hold: full / 4, full }
    }

    pub(super) const fn get(self) -> Duration {
        self.hold
    }

    pub(super) fn is_full(self) -> bool {
        self.hold == self.full
    }

    /// A lease expired before it was spent.
    pub(super) fn lengthen(&mut self) {
        self.hold = self.full.min(self.hold * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hold_begins_short_and_is_never_longer_than_the_full_hold() {
        let mut hold = NextHold::first_of(Duration::from_millis(1002));
        assert_eq!(hold.get(), Duration::from_micros(250_500));
        hold.lengthen();
        assert_eq!(hold.get(), Duration::from_millis(501));
        assert!(!hold.is_full());
        hold.lengthen();
        hold.lengthen();
        assert_eq!(hold.get(), Duration::from_millis(1002));
        assert!(hold.is_full());
    }

    #[test]
    fn part_follows_what_happened_to_the_last_leases() {
        let mut part = LeasePart::new();
        assert_eq!(part.of(800), 100);
        part.ended(32, 96);
        assert_eq!(part.of(800), 75, "a third was lost, so a quarter less");
        part.ended(100, 100);
        assert_eq!(part.of(1024), 42);
        (0..200).for_each(|_| part.spent());
        assert_eq!(part.of(800), 400, "at most half of the demand");
        (0..200).for_each(|_| part.ended(1, 1));
        assert_eq!(part.of(2400), 98);
    }

    #[test]
    fn fixed_size_shrinks_after_leases_that_ended_unspent() {
        let mut part = LeasePart::largest();
        assert_eq!(part.of_fixed(1000), 1000);
        part.ended(100, 100);
        assert_eq!(part.of_fixed(1000), 250);
        (0..9).for_each(|_| part.ended(100, 100));
        assert_eq!(part.of_fixed(1000), 82);
        (0..200).for_each(|_| part.spent());
        assert_eq!(part.of_fixed(1000), 1000);
    }
}
