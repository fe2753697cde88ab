//! A limit as plain numbers: what a test draws, a vector writes down, and an oracle reads.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate::algorithm::CalendarUnit;
use tollgate::{Limit, Quota, QuotaError};

/// How a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A burst, refilled evenly.
    TokenBucket,
    /// A log of accepted takes.
    SlidingWindow,
    /// Two counters and a weighted estimate.
    SlidingCounter,
    /// A window that opens with its first take.
    FixedWindow,
    /// A window of the calendar; its length is named by `align`.
    CalendarWindow,
    /// Slots that are given back, or return by themselves after the window.
    Concurrency,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::TokenBucket,
        Kind::SlidingWindow,
        Kind::SlidingCounter,
        Kind::FixedWindow,
        Kind::CalendarWindow,
        Kind::Concurrency,
    ];
}

/// A calendar unit, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
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
    /// The library's name for it.
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

/// The numbers of a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSpec {
    /// How it counts.
    pub algorithm: Kind,
    /// How many pass per window.
    pub count: u64,
    /// The window in microseconds, of slots the ttl; 0 where `align` names it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub window_us: u64,
    /// The burst, where it is not the count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// The calendar unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align: Option<Align>,
    /// The time zone of the calendar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl LimitSpec {
    /// A limit of a window in microseconds.
    #[must_use]
    pub fn new(algorithm: Kind, count: u64, window_us: u64) -> Self {
        Self { algorithm, count, window_us, burst: None, align: None, zone: None }
    }

    /// A limit of the calendar.
    #[must_use]
    pub fn calendar(count: u64, align: Align, zone: &str) -> Self {
        let mut spec = Self::new(Kind::CalendarWindow, count, 0);
        (spec.align, spec.zone) = (Some(align), Some(zone.to_owned()));
        spec
    }

    /// The same with another burst.
    #[must_use]
    pub fn with_burst(self, burst: u64) -> Self {
        Self { burst: Some(burst), ..self }
    }

    /// The most that can be taken at once.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.burst.unwrap_or(self.count)
    }

    /// The limit, under a name that stays the same when the numbers change.
    ///
    /// # Errors
    /// Where the library refuses the numbers.
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
        limit?.named("subject")
    }

    fn quota(&self) -> Result<Quota, QuotaError> {
        let quota = Quota::try_new(self.count, Duration::from_micros(self.window_us))?;
        match self.burst {
            Some(burst) => quota.try_burst(burst),
            None => Ok(quota),
        }
    }
}
