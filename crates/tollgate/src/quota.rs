//! A quota: so many per so long, with a burst.

use std::time::Duration;

use crate::error::{QuotaError, QuotaErrorKind};
use crate::time::{MAX_EXACT, MAX_PERIOD, SECOND};

/// How many may pass in how long. Always valid once built.
///
/// The constructors without `try_` are for numbers written in the source: in a `const`, a wrong one
/// does not compile. For numbers from outside use [`Quota::try_new`].
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
    /// `count` per `period`.
    ///
    /// # Panics
    /// Where [`Quota::try_new`] errs; at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn new(count: u64, period: Duration) -> Self {
        valid(Self::checked(count, period))
    }

    /// `count` per second. Panics on zero, at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn per_second(count: u64) -> Self {
        Self::new(count, Duration::from_secs(1))
    }

    /// `count` per minute. Panics on zero, at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn per_minute(count: u64) -> Self {
        Self::new(count, Duration::from_secs(60))
    }

    /// `count` per hour. Panics on zero, at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn per_hour(count: u64) -> Self {
        Self::new(count, Duration::from_secs(3600))
    }

    /// `count` per 24 hours. Panics on zero, at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn per_day(count: u64) -> Self {
        Self::new(count, Duration::from_secs(86_400))
    }

    /// The same rate with another burst: how many may pass at once after a rest. Without this call
    /// the burst is the count. Token buckets only.
    ///
    /// # Panics
    /// Where [`Quota::try_burst`] errs; at compile time in a `const`.
    #[must_use]
    #[track_caller]
    pub const fn burst(self, burst: u64) -> Self {
        valid(self.checked_burst(burst))
    }

    /// `count` per `period`, or why not.
    ///
    /// # Errors
    /// A count of zero or above 2^53 − 1; a period of zero, above 100 years, or with a fraction of a
    /// microsecond.
    pub const fn try_new(count: u64, period: Duration) -> Result<Self, QuotaError> {
        match Self::checked(count, period) {
            Ok(quota) => Ok(quota),
            Err(flaw) => Err(flaw.error()),
        }
    }

    /// The same rate with another burst, or why not.
    ///
    /// # Errors
    /// A burst of zero or above 2^53 − 1.
    pub const fn try_burst(self, burst: u64) -> Result<Self, QuotaError> {
        match self.checked_burst(burst) {
            Ok(quota) => Ok(quota),
            Err(flaw) => Err(flaw.error()),
        }
    }

    const fn checked(count: u64, period: Duration) -> Result<Self, Flaw> {
        let flaw = if count == 0 {
            Flaw::NoCount
        } else if count >= MAX_EXACT {
            Flaw::LargeCount
        } else if period.is_zero() {
            Flaw::NoPeriod
        } else if period.as_micros() > MAX_PERIOD as u128 {
            Flaw::LongPeriod
        } else if !period.subsec_nanos().is_multiple_of(1000) {
            Flaw::FinePeriod
        } else {
            let period = period.as_secs() * SECOND + period.subsec_micros() as u64;
            return Ok(Self { count, period, burst: None });
        };
        Err(flaw)
    }

    const fn checked_burst(self, burst: u64) -> Result<Self, Flaw> {
        match burst {
            0 => Err(Flaw::NoBurst),
            1..MAX_EXACT => Ok(Self { burst: Some(burst), ..self }),
            MAX_EXACT.. => Err(Flaw::LargeBurst),
        }
    }

    /// `count` slots that last for `ttl`: the same checks, and messages that name the ttl.
    pub(crate) fn of_slots(count: u64, ttl: Duration) -> Result<Self, QuotaError> {
        Self::checked(count, ttl).map_err(|flaw| {
            QuotaError::built(flaw.kind(), flaw.text().replacen("period", "ttl", 1))
        })
    }

    /// How many pass per period.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The period.
    #[must_use]
    pub const fn period(&self) -> Duration {
        Duration::from_micros(self.period)
    }

    /// How many may pass at once after a rest: the burst, or the count where none was set.
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

/// What is wrong with a quota, in a form that constant evaluation can drop.
#[derive(Clone, Copy)]
enum Flaw {
    NoCount,
    LargeCount,
    NoPeriod,
    LongPeriod,
    FinePeriod,
    NoBurst,
    LargeBurst,
}

impl Flaw {
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
#[expect(clippy::panic, reason = "for numbers in the source; in a const this is a compile error")]
const fn valid(quota: Result<Quota, Flaw>) -> Quota {
    match quota {
        Ok(quota) => quota,
        Err(flaw) => panic!("{}", flaw.text()),
    }
}
