//! The limits that are asked about.

use std::time::Duration;

use tollgate::{Limit, Quota};

use crate::Outcome;

/// One token comes back in so long, and windows are as long. Then nothing changes by itself within a run,
/// and no key is gone before it asks again.
pub const PERIOD: Duration = Duration::from_secs(600);

/// Which limits a decision is made under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// One token bucket.
    TokenBucket,
    /// One log of all that passed.
    SlidingWindow,
    /// One weighted pair of counters.
    SlidingCounter,
    /// One counter that starts over.
    FixedWindow,
    /// Two token buckets of the same key, in one plan.
    TwoLimits,
    /// The same of two keys, which a cluster has in two slots.
    TwoSubjects,
}

impl Limits {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::TokenBucket,
        Self::SlidingWindow,
        Self::SlidingCounter,
        Self::FixedWindow,
        Self::TwoLimits,
        Self::TwoSubjects,
    ];

    /// Those of one key.
    pub const OF_ONE_KEY: [Self; 5] = [
        Self::TokenBucket,
        Self::SlidingWindow,
        Self::SlidingCounter,
        Self::FixedWindow,
        Self::TwoLimits,
    ];

    /// Their name on the command line, and in policies where it is an algorithm's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token_bucket",
            Self::SlidingWindow => "sliding_window",
            Self::SlidingCounter => "sliding_counter",
            Self::FixedWindow => "fixed_window",
            Self::TwoLimits => "two_limits",
            Self::TwoSubjects => "two_subjects",
        }
    }

    /// Those of this name.
    ///
    /// # Errors
    /// None have it.
    pub fn named(name: &str) -> Outcome<Self> {
        let limits = Self::ALL.into_iter().find(|limits| limits.name() == name);
        limits.ok_or_else(|| format!("no algorithm is called {name}").into())
    }

    /// More than any key asks for in a run, if there are many keys; a log has to hold them all.
    #[must_use]
    pub const fn plenty(self) -> u32 {
        match self {
            Self::SlidingWindow => 100_000,
            _ => 10_000_000,
        }
    }

    /// The limits, each of so much at once.
    ///
    /// # Errors
    /// More than a limit can be exact about.
    pub fn of(self, burst: u32) -> Outcome<Vec<Limit>> {
        let burst = u64::from(burst);
        let bucket = |period| Limit::token_bucket(Quota::try_new(1, period)?.try_burst(burst)?);
        let window = Quota::try_new(burst, PERIOD)?;
        Ok(match self {
            Self::TokenBucket => vec![bucket(PERIOD)?],
            Self::SlidingWindow => vec![Limit::sliding_window(window)?],
            Self::SlidingCounter => vec![Limit::sliding_counter(window)?],
            Self::FixedWindow => vec![Limit::fixed_window(window)?],
            Self::TwoLimits | Self::TwoSubjects => vec![bucket(PERIOD / 2)?, bucket(PERIOD)?],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_can_be_exact_about_plenty_and_have_their_names() {
        for limits in Limits::ALL {
            assert_eq!(Limits::named(limits.name()).unwrap(), limits);
            for limit in limits.of(limits.plenty()).unwrap() {
                assert_eq!(limit.capacity(), u64::from(limits.plenty()), "{limits:?}");
            }
        }
    }
}
