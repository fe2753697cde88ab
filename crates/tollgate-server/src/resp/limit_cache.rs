//! Recently used limits of a connection, so that a command with known numbers validates and allocates nothing.

use std::time::Duration;

use tollgate::{InlineLimits, Limit, Quota, QuotaError};

/// Maximum number of limits in a cache. Programs use a few sets of numbers.
const MAX_LIMITS: usize = 16;

/// The numbers that define a limit of `CL.THROTTLE` or `THROTTLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LimitNumbers {
    /// The name of the limit: a key has one state per name, whatever the numbers are.
    pub(super) name: &'static str,
    pub(super) burst: u64,
    pub(super) count: u64,
    pub(super) period_seconds: u64,
}

/// Recently used limits.
#[derive(Debug, Default)]
pub(super) struct LimitCache {
    limits: Vec<(LimitNumbers, InlineLimits)>,
    /// Position of the entry to replace next.
    oldest: usize,
}

impl LimitCache {
    /// Returns the limit with these numbers, from the cache if it is there.
    pub(super) fn limits(&mut self, numbers: LimitNumbers) -> Result<InlineLimits, QuotaError> {
        if let Some((_, limits)) = self.limits.iter().find(|(known, _)| *known == numbers) {
            return Ok(limits.clone());
        }
        let limits = numbers.build()?;
        let entry = (numbers, limits.clone());
        match self.limits.get_mut(self.oldest) {
            Some(oldest) => *oldest = entry,
            None => self.limits.push(entry),
        }
        self.oldest = self.oldest.saturating_add(1) % MAX_LIMITS;
        Ok(limits)
    }
}

impl LimitNumbers {
    fn build(&self) -> Result<InlineLimits, QuotaError> {
        let quota = Quota::try_new(self.count, Duration::from_secs(self.period_seconds))?;
        let limit = Limit::token_bucket(quota.try_burst(self.burst)?)?.named(self.name)?;
        InlineLimits::new(vec![limit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_bounded_number_of_limits() {
        let mut cache = LimitCache::default();
        for round in 0..3 {
            for burst in 1..100 {
                let numbers = LimitNumbers { name: "cl", burst, count: 1, period_seconds: 1 };
                assert!(cache.limits(numbers).is_ok(), "{round}");
                assert!(cache.limits.iter().any(|(known, _)| *known == numbers));
            }
        }
        assert_eq!(cache.limits.len(), MAX_LIMITS);
        let invalid = LimitNumbers { name: "cl", burst: 1, count: 0, period_seconds: 1 };
        assert!(cache.limits(invalid).is_err());
    }
}
