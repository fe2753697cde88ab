//! Exact integer arithmetic.

use crate::time::MAX_EXACT;

/// Returns `⌈a·b/c⌉`, exact even if `a·b` exceeds 64 bits. Requires `c > 0`; callers keep the result
/// below 2^53.
pub(crate) fn mul_div_ceil(a: u64, b: u64, c: u64) -> u64 {
    let exact = (u128::from(a) * u128::from(b)).div_ceil(u128::from(c));
    u64::try_from(exact).unwrap_or(MAX_EXACT)
}

/// Returns a counter after a forced debit: clamped to the limit, but never lower than `count`.
pub(super) fn debited(count: u64, cost: u64, limit: u64) -> u64 {
    count.max(limit.min(count.saturating_add(cost)))
}

pub(super) const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the largest fraction `c'/p' ≤ c/p` with `p' ≤ max_p`, in lowest terms.
///
/// Walks the Stern–Brocot tree between `lo ≤ c/p < hi` and takes each run of equal turns in one step.
pub(super) fn largest_below(c: u64, p: u64, max_p: u64) -> (u64, u64) {
    let (c, p, max_p) = (u128::from(c), u128::from(p), u128::from(max_p));
    let (mut lo, mut hi) = ((0u128, 1u128), (1u128, 0u128));
    loop {
        // The largest n with lo + n·hi ≤ c/p and a denominator of at most max_p.
        let gap = (c * lo.1 - lo.0 * p, hi.0 * p - c * hi.1);
        let fits = |room: u128, step: u128| room.checked_div(step).unwrap_or(u128::MAX);
        let up = fits(gap.0, gap.1).min(fits(max_p - lo.1, hi.1));
        lo = (lo.0 + up * hi.0, lo.1 + up * hi.1);
        // The largest n with hi + n·lo > c/p (strictly) and a denominator of at most max_p.
        let gap = (c * lo.1 - lo.0 * p, hi.0 * p - c * hi.1);
        if gap.0 == 0 {
            break;
        }
        let down = ((gap.1 - 1) / gap.0).min((max_p - hi.1) / lo.1);
        hi = (hi.0 + down * lo.0, hi.1 + down * lo.1);
        if lo.1 + hi.1 > max_p {
            break;
        }
        if up == 0 && down == 0 {
            break;
        }
    }
    let narrow = |n: u128| u64::try_from(n).unwrap_or(MAX_EXACT);
    (narrow(lo.0), narrow(lo.1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn largest_below_matches_exhaustive_search(c in 1u64..5000, p in 1u64..5000, max_p in 1u64..400) {
            let best = (1..=max_p)
                .map(|q| (c * q / p, q))
                .max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)).then(b.1.cmp(&a.1)));
            let g = best.map_or(1, |(n, q)| gcd(n.max(1), q));
            let lowest = best.map(|(n, q)| if n == 0 { (0, 1) } else { (n / g, q / g) });
            prop_assert_eq!(Some(largest_below(c, p, max_p)), lowest);
        }

        #[test]
        fn mul_div_ceil_rounds_up_exactly(a in 0..MAX_EXACT, b in 1..MAX_EXACT, c in 1..MAX_EXACT) {
            prop_assume!(a <= c);
            let q = u128::from(mul_div_ceil(a, b, c));
            let (product, c) = (u128::from(a) * u128::from(b), u128::from(c));
            prop_assert!(q * c >= product);
            prop_assert!(q == 0 || (q - 1) * c < product);
        }
    }
}
