//! The limits of the measured decisions.

use std::time::Duration;

use tollgate::{Limit, Quota};

use crate::Outcome;

/// Refill time of one token, and length of windows. Longer than a run, so that no quota refills and
/// no key expires during it.
pub const PERIOD: Duration = Duration::from_secs(600);

/// The limits of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// One token bucket.
    TokenBucket,
    /// One token bucket that refills faster than any method decides.
    RefillingBucket,
    /// One sliding window (log of admitted requests).
    SlidingWindow,
    /// One sliding counter (two weighted counters).
    SlidingCounter,
    /// One fixed window.
    FixedWindow,
    /// Two token buckets of the same subject, in one plan.
    TwoLimits,
    /// Five token buckets of the same subject, in one plan.
    FiveLimits,
    /// Two token buckets of two subjects, which are in two slots of a cluster.
    TwoSubjects,
}

impl Limits {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::TokenBucket,
        Self::RefillingBucket,
        Self::SlidingWindow,
        Self::SlidingCounter,
        Self::FixedWindow,
        Self::TwoLimits,
        Self::FiveLimits,
        Self::TwoSubjects,
    ];

    /// The kinds with one subject.
    pub const OF_ONE_KEY: [Self; 6] = [
        Self::TokenBucket,
        Self::SlidingWindow,
        Self::SlidingCounter,
        Self::FixedWindow,
        Self::TwoLimits,
        Self::FiveLimits,
    ];

    /// The name on the command line. Names of algorithms are those in policies.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token_bucket",
            Self::RefillingBucket => "refilling_bucket",
            Self::SlidingWindow => "sliding_window",
            Self::SlidingCounter => "sliding_counter",
            Self::FixedWindow => "fixed_window",
            Self::TwoLimits => "two_limits",
            Self::FiveLimits => "five_limits",
            Self::TwoSubjects => "two_subjects",
        }
    }

    /// Parses a name.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn parse(name: &str) -> Outcome<Self> {
        let limits = Self::ALL.into_iter().find(|limits| limits.name() == name);
        limits.ok_or_else(|| format!("unknown --algorithm {name}").into())
    }

    /// A burst that no key exhausts in a run with many keys. A log must hold all of its entries, so
    /// its burst is smaller.
    #[must_use]
    pub const fn ample_burst(self) -> u32 {
        match self {
            Self::SlidingWindow => 100_000,
            Self::RefillingBucket => 200_000_000,
            _ => 10_000_000,
        }
    }

    /// Creates the limits with this burst.
    ///
    /// # Errors
    /// The burst exceeds the exact range of a limit.
    pub fn build(self, burst: u32) -> Outcome<Vec<Limit>> {
        let burst = u64::from(burst);
        let bucket = |period| Limit::token_bucket(Quota::try_new(1, period)?.try_burst(burst)?);
        let window = Quota::try_new(burst, PERIOD)?;
        Ok(match self {
            Self::TokenBucket => vec![bucket(PERIOD)?],
            Self::RefillingBucket => {
                let quota = Quota::try_new(20_000_000, Duration::from_secs(1))?;
                vec![Limit::token_bucket(quota.try_burst(burst)?)?]
            }
            Self::SlidingWindow => vec![Limit::sliding_window(window)?],
            Self::SlidingCounter => vec![Limit::sliding_counter(window)?],
            Self::FixedWindow => vec![Limit::fixed_window(window)?],
            Self::FiveLimits => {
                (1..=5).map(|part| bucket(PERIOD / part)).collect::<Result<Vec<Limit>, _>>()?
            }
            Self::TwoLimits | Self::TwoSubjects => vec![bucket(PERIOD / 2)?, bucket(PERIOD)?],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_accept_ample_burst_and_parse_from_names() {
        for limits in Limits::ALL {
            assert_eq!(Limits::parse(limits.name()).unwrap(), limits);
            for limit in limits.build(limits.ample_burst()).unwrap() {
                assert_eq!(limit.capacity(), u64::from(limits.ample_burst()), "{limits:?}");
            }
        }
    }
}
