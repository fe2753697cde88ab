//! This node's part of a limit, for when nodes cannot count together.

use std::num::NonZeroU32;

use crate::limit::Limit;
use crate::limit::spec::LimitSpec;

impl Limit {
    /// The part of one among so many nodes: count and burst each divided and rounded up, so that nobody's
    /// part is nothing and all parts together exceed the limit by less than one for each node.
    ///
    /// It has the same rule, name and algorithm, and so finds the same state.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use tollgate::{Limit, Quota};
    ///
    /// let limit = Limit::token_bucket(Quota::per_minute(90).burst(10))?.named("search")?;
    /// let part = limit.share(NonZeroU32::new(3).ok_or("not none")?);
    /// assert_eq!((part.count(), part.capacity(), part.name()), (30, 4, "search"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn share(&self, nodes: NonZeroU32) -> Self {
        let part = LimitSpec::of(self).divided(u64::from(nodes.get()));
        // Less is the safe way to be wrong.
        let built = part.build().or_else(|_| part.coarser().build());
        built.unwrap_or_else(|_| Self::block()).with_identity_of(self)
    }
}

impl LimitSpec {
    fn divided(mut self, nodes: u64) -> Self {
        match &mut self {
            Self::Block => {}
            Self::TokenBucket { count, burst, .. } => {
                *count = count.div_ceil(nodes);
                *burst = burst.div_ceil(nodes);
            }
            Self::SlidingWindow { count, .. }
            | Self::SlidingCounter { count, .. }
            | Self::FixedWindow { count, .. }
            | Self::CalendarWindow { count, .. }
            | Self::Concurrency { count, .. } => *count = count.div_ceil(nodes),
        }
        self
    }

    /// A bucket whose rate is the next below that even the largest burst can count: whole tokens in a
    /// microsecond, or whole microseconds to a token.
    fn coarser(&self) -> Self {
        match *self {
            Self::TokenBucket { count, period, burst } if count >= period => {
                Self::TokenBucket { count: count - count % period, period, burst }
            }
            Self::TokenBucket { count, period, burst } => {
                Self::TokenBucket { count: 1, period: period.div_ceil(count), burst }
            }
            _ => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::algorithm::CalendarUnit;
    use crate::quota::Quota;

    fn parts(limit: &Limit, nodes: u32) -> Limit {
        limit.share(NonZeroU32::new(nodes).unwrap())
    }

    #[test]
    fn every_kind_is_divided_and_stays_what_it_is() {
        let quota = Quota::per_minute(10);
        for limit in [
            Limit::token_bucket(quota.burst(7)).unwrap(),
            Limit::sliding_window(quota).unwrap(),
            Limit::sliding_counter(quota).unwrap(),
            Limit::fixed_window(quota).unwrap(),
            Limit::calendar_window(10, CalendarUnit::Month, "Europe/Berlin").unwrap(),
            Limit::concurrency(10, Duration::from_secs(5)).unwrap(),
        ] {
            let limit = limit.in_rule("r").unwrap();
            for nodes in [1, 3, 10, 11, u32::MAX] {
                let part = parts(&limit, nodes);
                assert_eq!(part.count(), 10_u64.div_ceil(u64::from(nodes)), "{limit:?} / {nodes}");
                assert_eq!(part.capacity(), limit.capacity().div_ceil(u64::from(nodes)));
                assert_eq!((part.identity(), part.window()), (limit.identity(), limit.window()));
                assert_eq!(part.ttl(), limit.ttl());
            }
            assert_eq!(parts(&limit, 1), limit);
        }
        assert_eq!(parts(&Limit::block(), 3), Limit::block());
    }

    #[test]
    fn a_rate_that_cannot_be_divided_exactly_loses_and_never_gains() {
        const DAY: u64 = 86_400_000_000;
        for quota in
            [Quota::per_day(100_000 * DAY), Quota::per_day(DAY / 100).burst(9_000_000_000_000)]
        {
            let limit = Limit::token_bucket(quota).unwrap();
            for nodes in 2..200 {
                let part = parts(&limit, nodes);
                // Tokens in a hundred years, of all nodes together.
                let rate = |limit: &Limit| {
                    u128::from(limit.count()) * 36_525 * 86_400_000_000 / limit.window().as_micros()
                };
                let (all, whole) = (rate(&part) * u128::from(nodes), rate(&limit));
                assert!(all > whole / 2 && all < whole + whole / 1000, "{nodes}: {all} of {whole}");
                assert_eq!(part.capacity(), limit.capacity().div_ceil(u64::from(nodes)));
            }
        }
    }
}
