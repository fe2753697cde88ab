//! The counts at which a limit is tried.

use tollgate::{Algorithm, Limit};

/// Maximum number of counts in one pass.
pub(super) const MAX_VALUES: usize = 24;

/// Largest count of the first pass, unless the limit is near it.
const USUAL_MAX: u64 = 1 << 22;

/// Largest count of a sliding window.
const MAX_WINDOW_COUNT: u64 = 100_000;

/// Returns the counts of the first pass: from 1 in equal ratios to far above the limit, and the limit's own count.
pub(in super::super) fn first_values(limit: &Limit) -> Vec<u64> {
    let mut max = USUAL_MAX.max(limit.count().saturating_mul(8));
    if matches!(limit.algorithm(), Algorithm::SlidingWindow | Algorithm::Concurrency) {
        max = max.min(MAX_WINDOW_COUNT);
    }
    let mut values = between(1, max, MAX_VALUES - 1);
    values.extend([1, max, limit.count()]);
    values.sort_unstable();
    values.dedup();
    if values.len() > MAX_VALUES {
        // One of the counts next to the limit's own is not needed.
        let own = values.iter().position(|value| *value == limit.count()).unwrap_or(1);
        values.remove(own.saturating_sub(1).max(1));
    }
    values
}

/// Returns the counts of the second pass: between the neighbours of each answer of the first one. A pair is the largest
/// count that refuses too much and the smallest that does not.
pub(in super::super) fn refined_values(brackets: &[(u64, u64)]) -> Vec<u64> {
    let mut brackets = brackets.to_vec();
    brackets.sort_unstable();
    brackets.dedup();
    let each = MAX_VALUES / brackets.len().max(1);
    let mut values: Vec<u64> =
        brackets.iter().flat_map(|(low, high)| between(*low, *high, each + 2)).collect();
    values.sort_unstable();
    values.dedup();
    values.truncate(MAX_VALUES);
    values
}

/// Returns whole numbers strictly between `low` and `high`, in about equal ratios: `points` with the two ends.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "grid values need not be exact; all are between low and high"
)]
fn between(low: u64, high: u64, points: usize) -> Vec<u64> {
    let inside = points.saturating_sub(2);
    if high <= low.saturating_add(1) || inside == 0 {
        return Vec::new();
    }
    if high - low - 1 <= inside as u64 {
        return (low + 1..high).collect();
    }
    let (from, to) = (low.max(1) as f64, high as f64);
    let value = |step: usize| {
        let exponent = step as f64 / (inside + 1) as f64;
        (from * (to / from).powf(exponent)).round() as u64
    };
    let mut values: Vec<u64> =
        (1..=inside).map(value).filter(|value| (low + 1..high).contains(value)).collect();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use tollgate::{Limit, Quota};

    use super::*;

    #[test]
    fn first_values_contain_the_limit_and_are_at_most_24() {
        for count in [1, 2, 3, 7, 10, 100, 1000, 65_536, 99_999, 3_000_000] {
            let limits = [
                Limit::token_bucket(Quota::per_minute(count)).ok(),
                Limit::sliding_window(Quota::per_minute(count)).ok(),
            ];
            for limit in limits.into_iter().flatten() {
                let values = first_values(&limit);
                assert!(values.len() <= MAX_VALUES, "{values:?}");
                assert!(values.contains(&count) && values.starts_with(&[1]), "{values:?}");
                assert!(values.is_sorted() && values.last() >= Some(&100_000), "{values:?}");
            }
        }
    }

    #[test]
    fn refined_values_are_inside_their_brackets() {
        assert_eq!(refined_values(&[(8, 16)]), [9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(refined_values(&[(1, 2)]), [0_u64; 0]);
        let values = refined_values(&[(1024, 2048), (4096, 8192)]);
        assert!(values.len() <= MAX_VALUES && values.len() > 16, "{values:?}");
        assert!(values.iter().all(|value| (1025..8192).contains(value)), "{values:?}");
    }
}
