//! What was counted up to a moment, or between two: figures that can be taken apart and put together.

use serde::{Deserialize, Serialize};

use super::histogram::BOUNDS;

/// One for each bound, and one for what took longer.
pub(crate) const BUCKETS: usize = BOUNDS.len() + 1;
const FIGURES: usize = 4 + BUCKETS;

/// All checks of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally(pub(super) [u64; FIGURES]);

/// The checks of one rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RuleTally(pub(super) [u64; 5]);

/// A part of what was counted in a while: from so far into it to so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) of: u64,
}

/// By so much figures are multiplied before they are taken apart.
pub(crate) const FINE: u64 = 1000;

impl Tally {
    pub(crate) const fn allowed(&self) -> u64 {
        let [allowed, ..] = self.0;
        allowed
    }

    pub(crate) const fn refused(&self) -> u64 {
        let [_, refused, ..] = self.0;
        refused
    }

    /// Decided without the store that nodes share.
    pub(crate) const fn degraded(&self) -> u64 {
        let [_, _, degraded, ..] = self.0;
        degraded
    }

    /// Questions that the store did not answer.
    pub(crate) const fn errors(&self) -> u64 {
        let [_, _, _, errors, ..] = self.0;
        errors
    }

    /// How long so many of a thousand checks took at most, in nanoseconds; none if there were none. Within a bucket
    /// all are taken to lie evenly; of what took longer than every bound only that is known.
    pub(crate) fn quantile(&self, permille: u64) -> Option<u64> {
        let [_, _, _, _, took @ ..] = self.0;
        let total: u64 = took.iter().fold(0, |sum, count| sum.saturating_add(*count));
        let wanted = part(total, permille, 1000).max(1);
        let (mut below, mut lower) = (0_u64, 0);
        for ((upper, _), count) in BOUNDS.iter().zip(took) {
            let upto = below.saturating_add(count);
            if wanted <= upto {
                return Some(lower + part(upper - lower, wanted - below, count));
            }
            (below, lower) = (upto, *upper);
        }
        (total > 0).then_some(lower)
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self(each(self.0, earlier.0, u64::saturating_sub))
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self(each(self.0, other.0, u64::saturating_add))
    }

    /// What falls to a part, multiplied by [`FINE`]. All parts together are the whole.
    pub(crate) fn part(&self, of: Part) -> Self {
        Self(self.0.map(|count| of.of_count(count)))
    }
}

impl RuleTally {
    pub(crate) const fn checked(&self) -> u64 {
        let [checked, ..] = self.0;
        checked
    }

    /// Whether there is anything but checks that passed.
    pub(crate) fn has_news(&self) -> bool {
        self.news() > 0
    }

    /// How much of that there is.
    pub(crate) fn news(&self) -> u64 {
        let [_, news @ ..] = self.0;
        news.into_iter().fold(0, u64::saturating_add)
    }

    /// Checked, refused, and what a shadow rule, a trial limit and the shared store would have said otherwise.
    pub(crate) const fn figures(&self) -> [u64; 5] {
        self.0
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self(each(self.0, earlier.0, u64::saturating_sub))
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self(each(self.0, other.0, u64::saturating_add))
    }

    /// As [`Tally::part`].
    pub(crate) fn part(&self, of: Part) -> Self {
        Self(self.0.map(|count| of.of_count(count)))
    }
}

impl Part {
    fn of_count(self, count: u64) -> u64 {
        let fine = count.saturating_mul(FINE);
        part(fine, self.to, self.of).saturating_sub(part(fine, self.from, self.of))
    }
}

/// So many of so many parts of a whole, without passing what fits.
fn part(whole: u64, parts: u64, of: u64) -> u64 {
    let product = u128::from(whole) * u128::from(parts);
    u64::try_from(product / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

fn each<const N: usize>(one: [u64; N], other: [u64; N], by: fn(u64, u64) -> u64) -> [u64; N] {
    let mut other = other.into_iter();
    one.map(|count| by(count, other.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(buckets: &[(usize, u64)]) -> Tally {
        let mut figures = [0; FIGURES];
        for (bucket, count) in buckets {
            figures[4 + bucket] = *count;
        }
        Tally(figures)
    }

    #[test]
    fn quantiles_lie_where_their_bucket_says() {
        assert_eq!(took(&[]).quantile(500), None);
        // From 100 to 250 microseconds.
        let even = took(&[(5, 100)]);
        assert_eq!(even.quantile(500), Some(175_000));
        assert_eq!(even.quantile(1000), Some(250_000));
        assert_eq!(took(&[(0, 99), (12, 1)]).quantile(990), Some(1000));
        assert_eq!(took(&[(BUCKETS - 1, 3)]).quantile(500), Some(100_000_000), "longer than that");
    }

    #[test]
    fn parts_are_the_whole() {
        let whole = Tally([7; FIGURES]);
        let cuts = [0, 1, 333, 334, 999, 1000];
        let parts = cuts.windows(2).map(|cut| {
            let [from, to] = *cut else { panic!("two") };
            whole.part(Part { from, to, of: 1000 })
        });
        let sum = parts.fold(Tally::default(), |sum, part| sum.plus(&part));
        assert_eq!(sum, Tally([7 * FINE; FIGURES]));
    }

    #[test]
    fn what_another_says_cannot_pass_what_fits() {
        let huge = Tally([u64::MAX; FIGURES]);
        assert_eq!(huge.plus(&huge), huge);
        assert!(huge.quantile(990).is_some());
        let part = huge.part(Part { from: 0, to: 10, of: 0 });
        assert_eq!(part.allowed(), u64::MAX);
    }
}
