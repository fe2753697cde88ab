//! Constructors of limits, one per algorithm.

use std::time::Duration;

use super::{Limit, LimitSpec};
use crate::algorithm::{
    AlignedWindow, Calendar, CalendarUnit, Concurrency, FixedWindow, Letter, Parameters,
    SlidingCounter, SlidingWindow, TokenBucket,
};
use crate::naming::window_name;
use crate::quota::{Quota, QuotaError, QuotaErrorKind};
use crate::time::saturating_micros;

const LONGEST_MONTH: Duration = Duration::from_secs(31 * 86_400);
const LONGEST_YEAR: Duration = Duration::from_secs(366 * 86_400);

/// Time zone of a calendar window that does not set one.
const DEFAULT_ZONE: &str = "UTC";
/// TTL of slots that do not set one.
const DEFAULT_TTL: Duration = Duration::from_secs(60);

impl Limit {
    /// Builds the limit of a specification that has the fields of `letter`.
    pub(super) fn of_spec(letter: Letter, spec: &LimitSpec) -> Result<Self, QuotaError> {
        let count = spec.count.unwrap_or_default();
        let quota = || Quota::try_new(count, spec.window.unwrap_or_default());
        match letter {
            Letter::Block => Ok(Self::block()),
            Letter::TokenBucket => {
                let quota = quota()?;
                Self::token_bucket(match spec.burst {
                    Some(burst) => quota.try_burst(burst)?,
                    None => quota,
                })
            }
            Letter::SlidingWindow => Self::sliding_window(quota()?),
            Letter::SlidingCounter => Self::sliding_counter(quota()?),
            Letter::FixedWindow => Self::fixed_window(quota()?),
            Letter::CalendarWindow => {
                let unit = spec.align.unwrap_or(CalendarUnit::Day);
                Self::calendar_window(count, unit, spec.tz.as_deref().unwrap_or(DEFAULT_ZONE))
            }
            Letter::Concurrency => Self::concurrency(count, spec.ttl.unwrap_or(DEFAULT_TTL)),
        }
    }

    /// Creates a token bucket: a burst that refills at a constant rate.
    ///
    /// # Errors
    /// The rate and burst exceed 2^53 steps, and no rate at most 10⁻⁹ lower fits.
    pub fn token_bucket(quota: Quota) -> Result<Self, QuotaError> {
        TokenBucket::new(&quota)
            .map(|parameters| Self::of(quota, Parameters::TokenBucket(parameters)))
    }

    /// Creates a sliding window: at most the count in any window, exactly, by a log of accepted takes.
    ///
    /// # Errors
    /// The count is above 100 000, or a burst is set.
    pub fn sliding_window(quota: Quota) -> Result<Self, QuotaError> {
        without_burst(&quota)?;
        SlidingWindow::new(&quota)
            .map(|parameters| Self::of(quota, Parameters::SlidingWindow(parameters)))
    }

    /// Creates a sliding counter: the count per window by a weighted estimate, in constant memory.
    ///
    /// # Errors
    /// A burst is set, or count × window exceeds 2^53 in every power-of-ten unit (µs) that divides the window.
    pub fn sliding_counter(quota: Quota) -> Result<Self, QuotaError> {
        without_burst(&quota)?;
        SlidingCounter::new(&quota)
            .map(|parameters| Self::of(quota, Parameters::SlidingCounter(parameters)))
    }

    /// Creates a fixed window, which opens at the first take after the previous window closed.
    ///
    /// # Errors
    /// A burst is set.
    pub fn fixed_window(quota: Quota) -> Result<Self, QuotaError> {
        without_burst(&quota)?;
        Ok(Self::of(quota, Parameters::FixedWindow(FixedWindow::new(&quota))))
    }

    /// Creates a fixed window aligned to a calendar unit in an IANA time zone.
    ///
    /// The store's clock selects the window. [`SystemClock`](crate::SystemClock) reads the wall clock once
    /// per process: if the machine sleeps or its wall clock is corrected, the windows are shifted until
    /// the process restarts.
    ///
    /// ```
    /// use tollgate::{Limit, algorithm::CalendarUnit};
    ///
    /// let monthly = Limit::calendar_window(1_000_000, CalendarUnit::Month, "America/New_York")?;
    /// assert_eq!(monthly.name(), "month");
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// The count is 0 or above 2^53 − 1, or the time zone is unknown.
    pub fn calendar_window(count: u64, unit: CalendarUnit, zone: &str) -> Result<Self, QuotaError> {
        let parameters = AlignedWindow::new(count, Calendar::new(unit, zone)?)?;
        let (name, window) = match (unit.length(), unit) {
            (Some(length), _) => (window_name(saturating_micros(length)), length),
            (None, CalendarUnit::Year) => (unit.as_str().into(), LONGEST_YEAR),
            (None, _) => (unit.as_str().into(), LONGEST_MONTH),
        };
        Ok(Self::unnamed(name, count, window, Parameters::AlignedWindow(parameters)))
    }

    /// Creates a concurrency limit: at most `count` requests in flight. A [permit](crate::Permit) releases
    /// its slots; an unreleased slot expires after `ttl`. Choose a `ttl` longer than the work, or renew the permit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Limit;
    ///
    /// let exports = Limit::concurrency(3, Duration::from_secs(60))?;
    /// assert_eq!((exports.name(), exports.capacity()), ("concurrency", 3));
    /// assert_eq!(exports.ttl(), Some(Duration::from_secs(60)));
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// The count is 0 or above 100 000, or the `ttl` is not a valid quota period.
    pub fn concurrency(count: u64, ttl: Duration) -> Result<Self, QuotaError> {
        let parameters = Parameters::Concurrency(Concurrency::new(count, ttl)?);
        Ok(Self::unnamed("concurrency".into(), count, Duration::ZERO, parameters))
    }

    /// Creates a block (limit 0), which refuses every request with [`Verdict::Never`](crate::Verdict::Never).
    #[must_use]
    pub fn block() -> Self {
        Self::unnamed("block".into(), 0, Duration::ZERO, Parameters::Block)
    }

    fn of(quota: Quota, parameters: Parameters) -> Self {
        Self::unnamed(window_name(quota.period_micros()), quota.count(), quota.period(), parameters)
    }
}

fn without_burst(quota: &Quota) -> Result<(), QuotaError> {
    if quota.has_burst() {
        return Err(QuotaError::fixed(
            QuotaErrorKind::Burst,
            "burst is supported by token_bucket only",
        ));
    }
    Ok(())
}
