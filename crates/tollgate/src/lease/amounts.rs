//! How much a store grants. `lua/lease.lua` of the Redis store mirrors it.

use super::plan_lease::Amounts;
use super::wanted::WantedLease;
use crate::algorithm::arithmetic::mul_div_ceil;
use crate::limit::Limit;
use crate::time::saturating_micros;

/// A lease takes at most this part of what is left, so that the last quota is not stranded on one node.
const LEASED_PART: u64 = 4;

impl WantedLease {
    /// Returns the amounts to grant, by take; `None` if too little is left. `room` has the limit and the remaining
    /// quota of each take, all of which are allowed. A paused key has nothing left.
    pub(crate) fn granted<'a>(
        &self,
        room: impl Iterator<Item = (&'a Limit, u64)>,
    ) -> Option<Amounts> {
        let mut most = Amounts::new();
        for ((limit, remaining), (cost, wanted)) in room.zip(self.takes()) {
            let amount = wanted.min(leasable(limit, remaining, self) / LEASED_PART);
            if amount < min_amount(cost) {
                return None;
            }
            most.push(amount);
        }
        // What one take lacks, the others cannot spend: all get the same part of what they want.
        let part_of = |wanted: u64| {
            let parts = most.iter().zip(self.amounts());
            parts.map(|(amount, of)| mul_div_ceil(*amount, wanted, *of)).min().unwrap_or(0)
        };
        let takes = most.iter().zip(self.takes());
        let amount = |(most, (cost, wanted)): (&u64, (u64, u64))| {
            (*most).min(part_of(wanted).max(min_amount(cost)))
        };
        Some(takes.map(amount).collect())
    }

    fn takes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.costs().iter().copied().zip(self.amounts().iter().copied())
    }
}

/// A smaller lease saves no call.
fn min_amount(cost: u64) -> u64 {
    cost.saturating_mul(2).max(2)
}

/// Returns how much of what remains can be leased. What a token bucket refills until the lease ends cannot.
fn leasable(limit: &Limit, remaining: u64, wanted: &WantedLease) -> u64 {
    let Some(bucket) = limit.parameters().as_token_bucket() else { return remaining };
    let (give, grains) = bucket.rate();
    let refilled = give.saturating_mul(saturating_micros(wanted.hold())).div_ceil(grains);
    remaining.min(bucket.burst().saturating_sub(refilled))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Quota;

    fn granted(takes: &[(u64, u64)], room: &[(&Limit, u64)]) -> Option<Vec<u64>> {
        let wanted = WantedLease::new(takes.iter().copied(), Duration::from_secs(1));
        wanted.granted(room.iter().copied()).map(|amounts| amounts.to_vec())
    }

    #[test]
    fn a_lease_is_at_most_a_quarter_of_what_is_left() {
        let window = Limit::fixed_window(Quota::per_minute(1000)).unwrap();
        assert_eq!(granted(&[(1, 100)], &[(&window, 1000)]), Some(vec![100]));
        assert_eq!(granted(&[(1, 100)], &[(&window, 100)]), Some(vec![25]));
        assert_eq!(granted(&[(1, 100)], &[(&window, 8)]), Some(vec![2]));
        assert_eq!(granted(&[(1, 100)], &[(&window, 7)]), None, "less than two");
        assert_eq!(granted(&[(13, 100)], &[(&window, 100)]), None, "less than two costs");
        assert_eq!(granted(&[(0, 0)], &[(&window, 100)]), None);
    }

    #[test]
    fn what_a_bucket_refills_meanwhile_is_not_leased() {
        let bucket = Limit::token_bucket(Quota::per_second(100).burst(300)).unwrap();
        assert_eq!(granted(&[(1, 100)], &[(&bucket, 300)]), Some(vec![50]));
        assert_eq!(granted(&[(1, 100)], &[(&bucket, 200)]), Some(vec![50]));
        assert_eq!(granted(&[(1, 100)], &[(&bucket, 100)]), Some(vec![25]));
    }

    #[test]
    fn takes_get_the_same_part_of_what_they_want() {
        let window = Limit::fixed_window(Quota::per_minute(1000)).unwrap();
        let both = |takes: &[(u64, u64)]| granted(takes, &[(&window, 1000), (&window, 40)]);
        assert_eq!(both(&[(1, 100), (1, 100)]), Some(vec![10, 10]));
        assert_eq!(both(&[(1, 100), (1, 30)]), Some(vec![34, 10]), "a third, rounded up");
        assert_eq!(both(&[(9, 100), (1, 100)]), Some(vec![18, 10]), "at least two costs");
    }
}
