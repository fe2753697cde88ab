//! Quotas: a count per period with a burst, and the errors of quotas, limits and names.

mod error;

use std::time::Duration;

pub use error::{QuotaError, QuotaErrorKind};

use crate::time::{MAX_EXACT, MAX_PERIOD, SECOND};

/// A count per period with a burst. Always valid once built.
///
/// The constructors without `try_` are for constants in source code: in a `const`, an invalid number
/// does not compile. Use [`Quota::try_new`] for runtime input.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
///
/// const SEARCH: Quota = Quota::per_minute(100).burst(20);
/// assert_eq!(SEARCH.max_burst(), 20);
///
/// let from_config = Quota::try_new(10, Duration::from_millis(1500))?;
/// assert_eq!(from_config.count(), 10);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
///
/// ```compile_fail
/// const NOTHING: tollgate::Quota = tollgate::Quota::per_minute(0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    count: u64,
    period: u64,
    burst: Option<u64>,
}

impl Quota {
    /// Creates a quota of `count` per `period`.
    ///
    /// # Panics
    /// If [`Quota::try_new`] returns an error; at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn new(count: u64, period: Duration) -> Self {
        valid(Self::checked(count, period))
    }

    /// Creates a quota per second. Panics if `count` is invalid, at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn per_second(count: u64) -> Self {
        Self::new(count, Duration::from_secs(1))
    }

    /// Creates a quota per minute. Panics if `count` is invalid, at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn per_minute(count: u64) -> Self {
        Self::new(count, Duration::from_secs(60))
    }

    /// Creates a quota per hour. Panics if `count` is invalid, at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn per_hour(count: u64) -> Self {
        Self::new(count, Duration::from_secs(3600))
    }

    /// Creates a quota per 24 hours. Panics if `count` is invalid, at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn per_day(count: u64) -> Self {
        Self::new(count, Duration::from_secs(86_400))
    }

    /// Returns the same rate with a burst: the maximum cost of one take from a full bucket. The default
    /// burst is the count. Token buckets only.
    ///
    /// # Panics
    /// If [`Quota::try_burst`] returns an error; at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn burst(self, burst: u64) -> Self {
        valid(self.checked_burst(burst))
    }

    /// Creates a quota of `count` per `period`, with validation.
    ///
    /// # Errors
    /// The count is 0 or above 2^53 − 1, or the period is zero, above 100 years, or not in whole
    /// microseconds.
    pub const fn try_new(count: u64, period: Duration) -> Result<Self, QuotaError> {
        match Self::checked(count, period) {
            Ok(quota) => Ok(quota),
            Err(invalid) => Err(invalid.error()),
        }
    }

    /// Returns the same rate with a burst, with validation.
    ///
    /// # Errors
    /// The burst is 0 or above 2^53 − 1.
    pub const fn try_burst(self, burst: u64) -> Result<Self, QuotaError> {
        match self.checked_burst(burst) {
            Ok(quota) => Ok(quota),
            Err(invalid) => Err(invalid.error()),
        }
    }

    const fn checked(count: u64, period: Duration) -> Result<Self, Invalid> {
        let invalid = if count == 0 {
            Invalid::NoCount
        } else if count >= MAX_EXACT {
            Invalid::LargeCount
        } else if period.is_zero() {
            Invalid::NoPeriod
        } else if period.as_micros() > MAX_PERIOD as u128 {
            Invalid::LongPeriod
        } else if !period.subsec_nanos().is_multiple_of(1000) {
            Invalid::FinePeriod
        } else {
            let period = period.as_secs() * SECOND + period.subsec_micros() as u64;
            return Ok(Self { count, period, burst: None });
        };
        Err(invalid)
    }

    const fn checked_burst(self, burst: u64) -> Result<Self, Invalid> {
        match burst {
            0 => Err(Invalid::NoBurst),
            1..MAX_EXACT => Ok(Self { burst: Some(burst), ..self }),
            MAX_EXACT.. => Err(Invalid::LargeBurst),
        }
    }

    /// Validates `count` slots with a `ttl`; the error messages name the `ttl` instead of the period.
    pub(crate) fn of_slots(count: u64, ttl: Duration) -> Result<Self, QuotaError> {
        Self::checked(count, ttl).map_err(|invalid| {
            QuotaError::built(invalid.kind(), invalid.text().replacen("period", "ttl", 1))
        })
    }

    /// Count per period.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Period of the count.
    #[must_use]
    pub const fn period(&self) -> Duration {
        Duration::from_micros(self.period)
    }

    /// Effective burst: the configured burst, or the count if none is set.
    #[must_use]
    pub const fn max_burst(&self) -> u64 {
        match self.burst {
            Some(burst) => burst,
            None => self.count,
        }
    }

    pub(crate) const fn period_micros(&self) -> u64 {
        self.period
    }

    pub(crate) const fn has_burst(&self) -> bool {
        self.burst.is_some()
    }
}

/// Validation error of a quota, without a destructor so that `const` functions can drop it.
#[derive(Clone, Copy)]
enum Invalid {
    NoCount,
    LargeCount,
    NoPeriod,
    LongPeriod,
    FinePeriod,
    NoBurst,
    LargeBurst,
}

impl Invalid {
    const fn text(self) -> &'static str {
        match self {
            Self::NoCount => "count must be at least 1 (use Limit::block to refuse everything)",
            Self::LargeCount => "count must be at most 2^53 - 1",
            Self::NoPeriod => "period must be longer than zero",
            Self::LongPeriod => "period must be at most 100 years (36525 days)",
            Self::FinePeriod => "period must be in whole microseconds",
            Self::NoBurst => "burst must be at least 1",
            Self::LargeBurst => "burst must be at most 2^53 - 1",
        }
    }

    const fn kind(self) -> QuotaErrorKind {
        match self {
            Self::NoCount | Self::LargeCount => QuotaErrorKind::Count,
            Self::NoPeriod | Self::LongPeriod | Self::FinePeriod => QuotaErrorKind::Period,
            Self::NoBurst | Self::LargeBurst => QuotaErrorKind::Burst,
        }
    }

    const fn error(self) -> QuotaError {
        QuotaError::fixed(self.kind(), self.text())
    }
}

#[track_caller]
#[expect(
    clippy::panic,
    reason = "for constants in source code; in a const this is a compile error"
)]
const fn valid(quota: Result<Quota, Invalid>) -> Quota {
    match quota {
        Ok(quota) => quota,
        Err(invalid) => panic!("{}", invalid.text()),
    }
}
