//! Counter values at one time, or their differences over an interval, that can be split and added.

use serde::{Deserialize, Serialize};

use super::histogram::BOUNDS;

/// Number of latency buckets: one per bound, and one above the largest bound.
pub(crate) const BUCKETS: usize = BOUNDS.len() + 1;
const FIGURES: usize = 4 + BUCKETS;

/// Counts of all checks of a node: allowed, refused, degraded, store errors, then the latency buckets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally(pub(super) [u64; FIGURES]);

/// Counts of one rule; [`RuleTally::figures`] lists them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RuleTally(pub(super) [u64; 5]);

/// A slice of an interval: from offset `from` to offset `to`, of an interval of length `of` (same unit).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) of: u64,
}

/// Fixed-point scale: counts are multiplied by this before they are split.
pub(crate) const SCALE: u64 = 1000;

impl Tally {
    pub(crate) const fn allowed(&self) -> u64 {
        let [allowed, ..] = self.0;
        allowed
    }

    pub(crate) const fn refused(&self) -> u64 {
        let [_, refused, ..] = self.0;
        refused
    }

    /// Checks decided without the shared store.
    pub(crate) const fn degraded(&self) -> u64 {
        let [_, _, degraded, ..] = self.0;
        degraded
    }

    /// Failed store calls.
    pub(crate) const fn errors(&self) -> u64 {
        let [_, _, _, errors, ..] = self.0;
        errors
    }

    /// Returns a latency quantile in nanoseconds; `None` without checks. Interpolates linearly within a bucket;
    /// above the largest bound, returns that bound.
    pub(crate) fn quantile(&self, permille: u64) -> Option<u64> {
        let [_, _, _, _, buckets @ ..] = self.0;
        let total: u64 = buckets.iter().fold(0, |sum, count| sum.saturating_add(*count));
        let rank = mul_div(total, permille, 1000).max(1);
        let (mut below, mut lower) = (0_u64, 0);
        for ((upper, _), count) in BOUNDS.iter().zip(buckets) {
            let cumulative = below.saturating_add(count);
            if rank <= cumulative {
                return Some(lower + mul_div(upper - lower, rank - below, count));
            }
            (below, lower) = (cumulative, *upper);
        }
        (total > 0).then_some(lower)
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self(combine(self.0, earlier.0, u64::saturating_sub))
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self(combine(self.0, other.0, u64::saturating_add))
    }

    /// Returns the share of the counts in a slice, multiplied by [`SCALE`]. Adjacent slices add up exactly.
    pub(crate) fn slice(&self, slice: Slice) -> Self {
        Self(self.0.map(|count| slice.apply(count)))
    }
}

impl RuleTally {
    pub(crate) const fn checked(&self) -> u64 {
        let [checked, ..] = self.0;
        checked
    }

    /// Returns whether there is any refusal, shadow refusal, trial refusal or divergence.
    pub(crate) fn has_refusals(&self) -> bool {
        self.refusals() > 0
    }

    /// Returns the number of refusals, shadow refusals, trial refusals and divergences together.
    pub(crate) fn refusals(&self) -> u64 {
        let [_, refusals @ ..] = self.0;
        refusals.into_iter().fold(0, u64::saturating_add)
    }

    /// Checks, refusals, shadow refusals, trial (`next`) refusals, and divergences from the shared store.
    pub(crate) const fn figures(&self) -> [u64; 5] {
        self.0
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self(combine(self.0, earlier.0, u64::saturating_sub))
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self(combine(self.0, other.0, u64::saturating_add))
    }

    /// Same as [`Tally::slice`].
    pub(crate) fn slice(&self, slice: Slice) -> Self {
        Self(self.0.map(|count| slice.apply(count)))
    }
}

impl Slice {
    /// Returns the length of the slice.
    pub(crate) const fn length(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Returns the whole counts in the slice. Adjacent slices add up exactly.
    pub(crate) fn part(self, count: u64) -> u64 {
        mul_div(count, self.to, self.of).saturating_sub(mul_div(count, self.from, self.of))
    }

    /// Returns the share of a count in the slice, multiplied by [`SCALE`].
    pub(crate) fn apply(self, count: u64) -> u64 {
        let scaled = count.saturating_mul(SCALE);
        mul_div(scaled, self.to, self.of).saturating_sub(mul_div(scaled, self.from, self.of))
    }
}

/// Returns `value * numerator / denominator`, saturating. A denominator of 0 counts as 1.
fn mul_div(value: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(value) * u128::from(numerator);
    u64::try_from(product / u128::from(denominator.max(1))).unwrap_or(u64::MAX)
}

fn combine<const N: usize>(a: [u64; N], b: [u64; N], op: fn(u64, u64) -> u64) -> [u64; N] {
    let mut b = b.into_iter();
    a.map(|count| op(count, b.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_buckets(buckets: &[(usize, u64)]) -> Tally {
        let mut figures = [0; FIGURES];
        for (bucket, count) in buckets {
            figures[4 + bucket] = *count;
        }
        Tally(figures)
    }

    #[test]
    fn quantile_interpolates_within_a_bucket() {
        assert_eq!(with_buckets(&[]).quantile(500), None);
        // Bucket 5: 100 to 250 microseconds.
        let even = with_buckets(&[(5, 100)]);
        assert_eq!(even.quantile(500), Some(175_000));
        assert_eq!(even.quantile(1000), Some(250_000));
        assert_eq!(with_buckets(&[(0, 99), (12, 1)]).quantile(990), Some(1000));
        let overflow = with_buckets(&[(BUCKETS - 1, 3)]);
        assert_eq!(overflow.quantile(500), Some(100_000_000), "the largest bound");
    }

    #[test]
    fn slices_add_up_to_the_whole() {
        let whole = Tally([7; FIGURES]);
        let cuts = [0, 1, 333, 334, 999, 1000];
        let slices = cuts.windows(2).map(|cut| {
            let [from, to] = *cut else { panic!("a window of two cuts") };
            whole.slice(Slice { from, to, of: 1000 })
        });
        let sum = slices.fold(Tally::default(), |sum, slice| sum.plus(&slice));
        assert_eq!(sum, Tally([7 * SCALE; FIGURES]));
    }

    #[test]
    fn huge_counts_of_another_node_saturate() {
        let huge = Tally([u64::MAX; FIGURES]);
        assert_eq!(huge.plus(&huge), huge);
        assert!(huge.quantile(990).is_some());
        let slice = huge.slice(Slice { from: 0, to: 10, of: 0 });
        assert_eq!(slice.allowed(), u64::MAX);
    }
}
