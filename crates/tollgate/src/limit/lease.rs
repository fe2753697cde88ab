//! Leases of a limit: whether a node takes quota in advance, how much, and for how long.

use std::num::NonZeroU32;
use std::time::Duration;

use super::Limit;
use crate::algorithm::{LeaseRule, Parameters};
use crate::time::saturating_micros;

/// Maximum time that a node holds a lease.
const MAX_HOLD: Duration = Duration::from_secs(1);

/// A lease that ends sooner costs more calls than it saves.
const MIN_HOLD: Duration = Duration::from_millis(20);

/// Minimum quota that can be leased from an unused key. A store grants at most a quarter of what is left, so leases of a
/// smaller limit would save few calls.
const MIN_ROOM: u64 = 16;

/// Size of the leases of a limit (policy field `lease`).
///
/// A node with a lease has debited a chunk of quota from the shared store in advance, and decides requests from it
/// without a call. The fleet never admits more than the limit. Only nodes with a shared store lease. Every store counts a
/// take from a leased sliding window for one [hold](Limit::lease_hold) longer than the window, at most 1 % of it.
///
/// ```
/// use tollgate::{LeaseSize, Limit, Quota};
///
/// let limit = Limit::token_bucket(Quota::per_minute(6000))?;
/// assert_eq!(limit.lease(), LeaseSize::Off);
/// assert_eq!(limit.with_lease(LeaseSize::Auto).lease(), LeaseSize::Auto);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum LeaseSize {
    /// No leases: the store decides every request.
    #[default]
    Off,
    /// A part of what the node needed recently for the same keys; less if earlier leases ended unspent. Rarely used keys are
    /// not leased.
    Auto,
    /// At most this amount; less when little is left, and after leases that ended unspent. Rarely used keys are not leased.
    Fixed(NonZeroU32),
}

/// The setting and the resulting time, which is computed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LeaseTerms {
    size: LeaseSize,
    hold: Option<Duration>,
}

impl Limit {
    /// Returns the same limit with this size of leases.
    ///
    /// The setting has no effect on limits that cannot be leased, see [`lease_hold`](Self::lease_hold).
    #[must_use]
    pub fn with_lease(self, size: LeaseSize) -> Self {
        let hold = self.max_lease_hold().filter(|hold| match size {
            LeaseSize::Off => false,
            LeaseSize::Auto => self.lease_room(*hold) >= MIN_ROOM,
            LeaseSize::Fixed(size) => self.lease_room(*hold) >= MIN_ROOM.max(size.get().into()),
        });
        let parameters = self.parameters_with_hold(hold);
        Self { lease: LeaseTerms { size, hold }, parameters, ..self }
    }

    /// Size of the leases of this limit.
    #[must_use]
    pub const fn lease(&self) -> LeaseSize {
        self.lease.size
    }

    /// Maximum time that a node holds a lease of this limit; `None` if the limit is not leased: leases are off, the
    /// algorithm is `concurrency`, or the limit is too small or its window too short.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{LeaseSize, Limit, Quota};
    ///
    /// let hold = |quota| Limit::token_bucket(quota).map(|limit| limit.with_lease(LeaseSize::Auto).lease_hold());
    /// assert_eq!(hold(Quota::per_minute(6000))?, Some(Duration::from_secs(1)));
    /// assert_eq!(hold(Quota::per_second(1000))?, Some(Duration::from_millis(125)));
    /// assert_eq!(hold(Quota::per_minute(10))?, None, "too small");
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[must_use]
    pub const fn lease_hold(&self) -> Option<Duration> {
        self.lease.hold
    }

    /// Returns the maximum time of a lease. A token bucket refills at most an eighth of its burst meanwhile, which
    /// cannot be leased. Leases of windows are short relative to the window, so that little is lost with a lease that a
    /// crashed node held.
    fn max_lease_hold(&self) -> Option<Duration> {
        let hold = match self.letter().lease_rule() {
            LeaseRule::Never => return None,
            LeaseRule::Refill => self.refill_time() / 8,
            LeaseRule::Log => self.window / 100,
            LeaseRule::Window | LeaseRule::FadingWindow => self.window / 8,
        };
        (hold >= MIN_HOLD).then_some(hold.min(MAX_HOLD))
    }

    /// Returns the parameters of the limit if it is leased for this time. This is the only place where a lease changes
    /// them, so that all stores count the same: a sliding window logs a lease when it is taken, and a node spends it up
    /// to `hold` later, so every entry counts for `hold` longer.
    fn parameters_with_hold(&self, hold: Option<Duration>) -> Parameters {
        match &self.parameters {
            Parameters::SlidingWindow(parameters) => {
                let length = self.window + hold.unwrap_or_default();
                Parameters::SlidingWindow(parameters.with_length(saturating_micros(length)))
            }
            parameters => parameters.clone(),
        }
    }

    /// Returns the time in which an empty token bucket refills.
    fn refill_time(&self) -> Duration {
        let Some(bucket) = self.parameters.as_token_bucket() else { return Duration::ZERO };
        let (give, grains) = bucket.rate();
        let micros = u128::from(bucket.burst()) * u128::from(grains) / u128::from(give.max(1));
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Returns how much of an unused key can be leased for this time: not what a token bucket refills meanwhile.
    fn lease_room(&self, hold: Duration) -> u64 {
        let Some(bucket) = self.parameters.as_token_bucket() else { return self.capacity() };
        let (give, grains) = bucket.rate();
        let refilled = (u128::from(give) * hold.as_micros()).div_ceil(u128::from(grains.max(1)));
        self.capacity().saturating_sub(u64::try_from(refilled).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Quota};

    #[test]
    fn only_limits_that_are_large_enough_are_leased() {
        let hold = |limit: Limit, size| limit.with_lease(size).lease_hold();
        let bucket = |quota| Limit::token_bucket(quota).unwrap();
        let fixed = |size| LeaseSize::Fixed(NonZeroU32::new(size).unwrap());
        assert_eq!(hold(bucket(Quota::per_minute(6000)), LeaseSize::Off), None);
        assert_eq!(hold(bucket(Quota::per_minute(15)), LeaseSize::Auto), None);
        assert_eq!(hold(bucket(Quota::per_minute(18)), LeaseSize::Auto), Some(MAX_HOLD));
        assert_eq!(
            hold(bucket(Quota::per_second(1000).burst(10_000)), fixed(9000)),
            Some(MAX_HOLD)
        );
        assert_eq!(hold(bucket(Quota::per_second(1000).burst(10_000)), fixed(9001)), None);
        let millis = |millis| Quota::new(1000, Duration::from_millis(millis));
        assert_eq!(hold(bucket(millis(100)), LeaseSize::Auto), None, "refills too fast");
        let window = Limit::sliding_window(Quota::per_minute(1000)).unwrap();
        assert_eq!(hold(window, LeaseSize::Auto), Some(Duration::from_millis(600)));
        let window = Limit::fixed_window(Quota::per_second(1000)).unwrap();
        assert_eq!(hold(window, LeaseSize::Auto), Some(Duration::from_millis(125)));
        let slots = Limit::concurrency(1000, Duration::from_secs(60)).unwrap();
        assert_eq!(slots.algorithm(), Algorithm::Concurrency);
        assert_eq!(hold(slots, LeaseSize::Auto), None);
        assert_eq!(hold(Limit::block(), LeaseSize::Auto), None);
    }

    #[test]
    fn a_take_from_a_leased_sliding_window_counts_for_the_time_of_a_lease_longer() {
        let length = |limit: &Limit| match limit.parameters() {
            Parameters::SlidingWindow(parameters) => parameters.length(),
            _ => 0,
        };
        let exact = Limit::sliding_window(Quota::per_minute(1000)).unwrap();
        let leased = exact.clone().with_lease(LeaseSize::Auto);
        assert_eq!((length(&exact), length(&leased)), (60_000_000, 60_600_000));
        assert_eq!(length(&leased.clone().with_lease(LeaseSize::Auto)), 60_600_000);
        assert_eq!((leased.window(), leased.with_lease(LeaseSize::Off)), (exact.window(), exact));
    }
}
