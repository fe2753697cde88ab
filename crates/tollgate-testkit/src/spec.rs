//! Limit specifications as plain numbers, for random tests, golden vectors and the oracle.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate::algorithm::CalendarUnit;
use tollgate::{LeaseSize, Limit, Quota, QuotaError};

/// Algorithm of a limit; calendar windows are separate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A burst that refills at a constant rate.
    TokenBucket,
    /// A log of accepted takes.
    SlidingWindow,
    /// Two counters and a weighted estimate.
    SlidingCounter,
    /// A window that opens with its first take.
    FixedWindow,
    /// A window aligned to the calendar unit `align`.
    CalendarWindow,
    /// Slots that are released, or expire after the window.
    Concurrency,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 6] = [
        Kind::TokenBucket,
        Kind::SlidingWindow,
        Kind::SlidingCounter,
        Kind::FixedWindow,
        Kind::CalendarWindow,
        Kind::Concurrency,
    ];
}

/// Calendar unit of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "self-explanatory names")]
pub enum Align {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Align {
    /// Converts to the library's type.
    #[must_use]
    pub fn unit(self) -> CalendarUnit {
        match self {
            Self::Second => CalendarUnit::Second,
            Self::Minute => CalendarUnit::Minute,
            Self::Hour => CalendarUnit::Hour,
            Self::Day => CalendarUnit::Day,
            Self::Week => CalendarUnit::Week,
            Self::Month => CalendarUnit::Month,
            Self::Year => CalendarUnit::Year,
        }
    }
}

/// Specification of a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSpec {
    /// Algorithm.
    pub algorithm: Kind,
    /// Count per window.
    pub count: u64,
    /// Window in microseconds (for slots, the TTL); 0 if `align` is set.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub window_us: u64,
    /// Burst, if it differs from the count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Calendar unit of a calendar window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align: Option<Align>,
    /// Time zone of a calendar window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Whether nodes lease from the limit.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leased: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_false(is_set: &bool) -> bool {
    !*is_set
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl LimitSpec {
    /// Creates a spec with a window in microseconds.
    #[must_use]
    pub fn new(algorithm: Kind, count: u64, window_us: u64) -> Self {
        Self { algorithm, count, window_us, burst: None, align: None, zone: None, leased: false }
    }

    /// Creates the spec of a calendar window.
    #[must_use]
    pub fn calendar(count: u64, align: Align, zone: &str) -> Self {
        let mut spec = Self::new(Kind::CalendarWindow, count, 0);
        (spec.align, spec.zone) = (Some(align), Some(zone.to_owned()));
        spec
    }

    /// Returns the same spec with a burst.
    #[must_use]
    pub fn with_burst(self, burst: u64) -> Self {
        Self { burst: Some(burst), ..self }
    }

    /// Returns the same spec with leases, as far as the limit can be leased.
    #[must_use]
    pub fn leased(self) -> Self {
        Self { leased: true, ..self }
    }

    /// Time in microseconds for which a take from a sliding window counts: under a leased limit for a lease longer.
    #[must_use]
    pub fn counted_us(&self) -> u64 {
        let hold = (self.window_us / 100).min(1_000_000);
        let is_leased = self.leased && self.count >= 16 && hold >= 20_000;
        self.window_us + if is_leased { hold } else { 0 }
    }

    /// Maximum cost of one take.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.burst.unwrap_or(self.count)
    }

    /// Builds the limit, always with the same name so that its state is kept when the parameters change.
    ///
    /// # Errors
    /// The library rejects the numbers.
    pub fn build(&self) -> Result<Limit, QuotaError> {
        let limit = match (self.algorithm, self.align) {
            (Kind::CalendarWindow, align) => {
                let unit = align.unwrap_or(Align::Minute).unit();
                Limit::calendar_window(self.count, unit, self.zone.as_deref().unwrap_or("UTC"))
            }
            (Kind::TokenBucket, _) => Limit::token_bucket(self.quota()?),
            (Kind::SlidingWindow, _) => Limit::sliding_window(self.quota()?),
            (Kind::SlidingCounter, _) => Limit::sliding_counter(self.quota()?),
            (Kind::FixedWindow, _) => Limit::fixed_window(self.quota()?),
            (Kind::Concurrency, _) => {
                Limit::concurrency(self.count, Duration::from_micros(self.window_us))
            }
        };
        let size = if self.leased { LeaseSize::Auto } else { LeaseSize::Off };
        Ok(limit?.named("subject")?.with_lease(size))
    }

    fn quota(&self) -> Result<Quota, QuotaError> {
        let quota = Quota::try_new(self.count, Duration::from_micros(self.window_us))?;
        match self.burst {
            Some(burst) => quota.try_burst(burst),
            None => Ok(quota),
        }
    }
}
