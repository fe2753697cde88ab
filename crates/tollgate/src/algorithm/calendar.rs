//! Calendar windows in any time zone, with correct daylight saving changes.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp as Instant, ToSpan};
use parking_lot::Mutex;

use crate::quota::{QuotaError, QuotaErrorKind};
use crate::time::{SECOND, Timestamp};

/// Calendar unit that a window is aligned to. Weeks start on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "self-explanatory names")]
pub enum CalendarUnit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl CalendarUnit {
    /// All units, shortest first.
    pub const ALL: [Self; 7] =
        [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year];

    /// Name of the unit in policies and APIs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    /// Nominal length of the unit (ignoring daylight saving); `None` for months and years, which vary.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::algorithm::CalendarUnit;
    ///
    /// assert_eq!(CalendarUnit::Minute.length(), Some(Duration::from_secs(60)));
    /// assert_eq!(CalendarUnit::Month.length(), None);
    /// ```
    #[must_use]
    pub const fn length(self) -> Option<Duration> {
        let seconds = match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3600,
            Self::Day => 86_400,
            Self::Week => 7 * 86_400,
            Self::Month | Self::Year => return None,
        };
        Some(Duration::from_secs(seconds))
    }
}

/// A calendar unit in a time zone. Its windows cover all time without gaps or overlaps.
///
/// ```
/// use tollgate::algorithm::{Calendar, CalendarUnit};
/// use tollgate::Timestamp;
///
/// let month = Calendar::new(CalendarUnit::Month, "Europe/Zurich")?;
/// let window = month.window(Timestamp::EPOCH);
/// assert_eq!(window.end.as_micros() / 1_000_000, 31 * 86_400 - 3600);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
pub struct Calendar {
    unit: CalendarUnit,
    zone: TimeZone,
    // Cached because a time zone lookup costs more than a whole decision.
    cached: Mutex<Range<Timestamp>>,
}

impl Calendar {
    /// Creates a calendar for an IANA time zone, such as `UTC` or `America/New_York`.
    ///
    /// # Errors
    /// The time zone is unknown.
    pub fn new(unit: CalendarUnit, zone: &str) -> Result<Self, QuotaError> {
        let zone = TimeZone::get(zone).map_err(|_| {
            QuotaError::built(
                QuotaErrorKind::TimeZone,
                format!("unknown time zone {zone:?}; use an IANA name such as \"UTC\" or \"Europe/Zurich\""),
            )
        })?;
        Ok(Self { unit, zone, cached: Mutex::new(Timestamp::EPOCH..Timestamp::EPOCH) })
    }

    /// Calendar unit of the windows.
    #[must_use]
    pub fn unit(&self) -> CalendarUnit {
        self.unit
    }

    /// IANA name of the time zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// Returns the window that contains `now`.
    #[must_use]
    pub fn window(&self, now: Timestamp) -> Range<Timestamp> {
        let mut cached = self.cached.lock();
        if !cached.contains(&now) {
            *cached = self.compute(now);
        }
        cached.clone()
    }

    fn compute(&self, now: Timestamp) -> Range<Timestamp> {
        let instant = i64::try_from(now.as_micros())
            .ok()
            .and_then(|micros| Instant::from_microsecond(micros).ok())
            .unwrap_or(Instant::MAX);
        let today = self.zone.to_datetime(instant).date();
        match self.unit {
            CalendarUnit::Second => self.clock_window(now, instant, SECOND),
            CalendarUnit::Minute => self.clock_window(now, instant, 60 * SECOND),
            CalendarUnit::Hour => self.clock_window(now, instant, 3600 * SECOND),
            CalendarUnit::Day => self.date_window(now, today, 1.day()),
            CalendarUnit::Week => {
                let since_monday = i64::from(today.weekday().since(Weekday::Monday));
                self.date_window(now, today.saturating_sub(since_monday.days()), 1.week())
            }
            CalendarUnit::Month => self.date_window(now, today.first_of_month(), 1.month()),
            CalendarUnit::Year => self.date_window(now, today.first_of_year(), 1.year()),
        }
    }

    /// Returns a window of the wall clock. A UTC offset change ends the window, so windows never overlap.
    fn clock_window(&self, now: Timestamp, instant: Instant, length: u64) -> Range<Timestamp> {
        let offset = i128::from(self.zone.to_offset(instant).seconds()) * i128::from(SECOND);
        let into = (i128::from(now.as_micros()) + offset).rem_euclid(i128::from(length));
        let into = u64::try_from(into).unwrap_or(0);
        let start = now.as_micros().saturating_sub(into);
        let mut window =
            Timestamp::from_micros(start)..Timestamp::from_micros(now.as_micros() + length - into);
        // `preceding` excludes its argument, but an offset change may be exactly at this time.
        let next_instant = instant.checked_add(1.microsecond()).unwrap_or(instant);
        if let Some(change) = self.zone.preceding(next_instant).next() {
            window.start = window.start.max(timestamp(change.timestamp()));
        }
        if let Some(change) = self.zone.following(instant).next() {
            window.end = window.end.min(timestamp(change.timestamp()));
        }
        window
    }

    /// Returns a window of whole days. `from` is its first day by the local date at `now`.
    ///
    /// Where clocks go back over midnight, the local date goes back too, but the window that has begun does not end.
    fn date_window(&self, now: Timestamp, from: Date, length: Span) -> Range<Timestamp> {
        let until = from.saturating_add(length);
        let end = self.first_instant(until);
        if end > now {
            self.first_instant(from)..end
        } else {
            end..self.first_instant(until.saturating_add(length))
        }
    }

    /// Returns the first instant of a day, which a change of the clock may move away from 00:00.
    fn first_instant(&self, date: Date) -> Timestamp {
        let Ok(midnight) = date.to_zoned(self.zone.clone()) else { return Timestamp::MAX };
        let midnight = midnight.timestamp();
        let next_instant = midnight.checked_add(1.microsecond()).unwrap_or(midnight);
        // If 00:00 is skipped, the day begins with the change that skips it.
        let change = self.zone.preceding(next_instant).next().map(|change| change.timestamp());
        let begins_day = |change: &Instant| {
            let before = change.checked_sub(1.microsecond()).unwrap_or(*change);
            let date_at = |instant| self.zone.to_datetime(instant).date();
            date_at(before) < date && date_at(*change) >= date
        };
        timestamp(change.filter(begins_day).unwrap_or(midnight))
    }
}

/// Converts a jiff timestamp; times before the epoch become the epoch.
fn timestamp(instant: Instant) -> Timestamp {
    Timestamp::from_micros(u64::try_from(instant.as_microsecond()).unwrap_or(0))
}

impl Clone for Calendar {
    fn clone(&self) -> Self {
        Self {
            unit: self.unit,
            zone: self.zone.clone(),
            cached: Mutex::new(self.cached.lock().clone()),
        }
    }
}

impl PartialEq for Calendar {
    fn eq(&self, other: &Self) -> bool {
        self.unit == other.unit && self.zone == other.zone
    }
}

impl Eq for Calendar {}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calendar")
            .field("unit", &self.unit)
            .field("zone", &self.zone.iana_name())
            .finish()
    }
}
