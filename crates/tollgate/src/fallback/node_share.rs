//! One node's share of a limit, for decisions without the shared store.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::limit::{Limit, LimitSpec};
use crate::time::saturating_micros;

impl Limit {
    /// Returns one node's share: count and burst, each divided by `nodes` and rounded up. No share is zero, and
    /// all shares together exceed the limit by less than one per node.
    ///
    /// The share has the same rule, name and algorithm, so it uses the same stored state.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use tollgate::{Limit, Quota};
    ///
    /// let limit = Limit::token_bucket(Quota::per_minute(90).burst(10))?.named("search")?;
    /// let share = limit.share(NonZeroU32::new(3).ok_or("zero nodes")?);
    /// assert_eq!((share.count(), share.capacity(), share.name()), (30, 4, "search"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn share(&self, nodes: NonZeroU32) -> Self {
        let share = self.unnamed_spec().divided_by(u64::from(nodes.get()));
        // If the exact rate cannot be built, use a lower one: admitting less is safe.
        let limit = share.build().or_else(|_| share.with_coarser_rate().build());
        limit.unwrap_or_else(|_| Self::block()).with_identity_of(self)
    }
}

impl LimitSpec {
    fn divided_by(self, nodes: u64) -> Self {
        let divided = |number: Option<u64>| number.map(|number| number.div_ceil(nodes));
        Self { count: divided(self.count), burst: divided(self.burst), ..self }
    }

    /// Rounds a rate with a burst down to one that works with every burst: whole tokens per microsecond, or whole
    /// microseconds per token.
    fn with_coarser_rate(&self) -> Self {
        let window = self.window.map(saturating_micros);
        let (Some(count), Some(window), Some(_)) = (self.count, window, self.burst) else {
            return self.clone();
        };
        let (count, window) = if count >= window {
            (count - count.checked_rem(window).unwrap_or_default(), window)
        } else {
            (1, window.div_ceil(count.max(1)))
        };
        let window = Some(Duration::from_micros(window));
        Self { count: Some(count), window, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::CalendarUnit;
    use crate::quota::Quota;

    fn share(limit: &Limit, nodes: u32) -> Limit {
        limit.share(NonZeroU32::new(nodes).unwrap())
    }

    #[test]
    fn share_divides_count_and_keeps_identity() {
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
                let share = share(&limit, nodes);
                assert_eq!(share.count(), 10_u64.div_ceil(u64::from(nodes)), "{limit:?} / {nodes}");
                assert_eq!(share.capacity(), limit.capacity().div_ceil(u64::from(nodes)));
                assert_eq!((share.identity(), share.window()), (limit.identity(), limit.window()));
                assert_eq!(share.ttl(), limit.ttl());
            }
            assert_eq!(share(&limit, 1), limit);
        }
        assert_eq!(share(&Limit::block(), 3), Limit::block());
    }

    #[test]
    fn inexact_rate_is_rounded_down() {
        const DAY: u64 = 86_400_000_000;
        for quota in
            [Quota::per_day(100_000 * DAY), Quota::per_day(DAY / 100).burst(9_000_000_000_000)]
        {
            let limit = Limit::token_bucket(quota).unwrap();
            for nodes in 2..200 {
                let share = share(&limit, nodes);
                // Tokens per hundred years.
                let rate = |limit: &Limit| {
                    u128::from(limit.count()) * 36_525 * 86_400_000_000 / limit.window().as_micros()
                };
                let (sum, full) = (rate(&share) * u128::from(nodes), rate(&limit));
                assert!(sum > full / 2 && sum < full + full / 1000, "{nodes}: {sum} of {full}");
                assert_eq!(share.capacity(), limit.capacity().div_ceil(u64::from(nodes)));
            }
        }
    }
}
