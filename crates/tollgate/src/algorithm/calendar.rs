//! Windows of the calendar, in any time zone, through daylight saving.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp as Instant, ToSpan};
use parking_lot::Mutex;

use crate::error::{QuotaError, QuotaErrorKind};
use crate::time::{SECOND, Timestamp};

/// What a calendar window is aligned to. Weeks begin on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
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
    /// All of them, the shortest first.
    pub const ALL: [Self; 7] =
        [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year];

    /// Its name in policies and on the wire.
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

    /// How long it is, of those that are mostly equally long; none for months and years.
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

/// A unit of the calendar in a time zone. It divides all time into windows without gap or overlap.
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
    // Asking the zone database costs more than a whole decision, and the answer holds for long.
    last: Mutex<Range<Timestamp>>,
}

impl Calendar {
    /// Windows of this unit in this IANA time zone, such as `UTC` or `America/New_York`.
    ///
    /// # Errors
    /// An unknown time zone.
    pub fn new(unit: CalendarUnit, zone: &str) -> Result<Self, QuotaError> {
        let zone = TimeZone::get(zone).map_err(|_| {
            QuotaError::built(
                QuotaErrorKind::TimeZone,
                format!("time zone {zone:?} is not in the IANA database (try \"UTC\" or \"Europe/Zurich\")"),
            )
        })?;
        Ok(Self { unit, zone, last: Mutex::new(Timestamp::EPOCH..Timestamp::EPOCH) })
    }

    /// The unit.
    #[must_use]
    pub fn unit(&self) -> CalendarUnit {
        self.unit
    }

    /// The time zone's IANA name.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The window that `now` lies in.
    #[must_use]
    pub fn window(&self, now: Timestamp) -> Range<Timestamp> {
        let mut last = self.last.lock();
        if !last.contains(&now) {
            *last = self.compute(now);
        }
        last.clone()
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
            CalendarUnit::Day => self.days(today, today.saturating_add(1.day())),
            CalendarUnit::Week => {
                let monday =
                    today.saturating_sub(i64::from(today.weekday().since(Weekday::Monday)).days());
                self.days(monday, monday.saturating_add(1.week()))
            }
            CalendarUnit::Month => {
                let first = today.first_of_month();
                self.days(first, first.saturating_add(1.month()))
            }
            CalendarUnit::Year => {
                let first = today.first_of_year();
                self.days(first, first.saturating_add(1.year()))
            }
        }
    }

    /// A window of the wall clock. A change of offset within it ends it, so windows never overlap.
    fn clock_window(&self, now: Timestamp, instant: Instant, length: u64) -> Range<Timestamp> {
        let offset = i128::from(self.zone.to_offset(instant).seconds()) * i128::from(SECOND);
        let into = (i128::from(now.as_micros()) + offset).rem_euclid(i128::from(length));
        let into = u64::try_from(into).unwrap_or(0);
        let start = now.as_micros().saturating_sub(into);
        let mut window =
            Timestamp::from_micros(start)..Timestamp::from_micros(now.as_micros() + length - into);
        // `preceding` is exclusive of its argument, and a change may fall on this very moment.
        let next_instant = instant.checked_add(1.microsecond()).unwrap_or(instant);
        if let Some(change) = self.zone.preceding(next_instant).next() {
            window.start = window.start.max(moment(change.timestamp()));
        }
        if let Some(change) = self.zone.following(instant).next() {
            window.end = window.end.min(moment(change.timestamp()));
        }
        window
    }

    fn days(&self, from: Date, until: Date) -> Range<Timestamp> {
        self.midnight(from)..self.midnight(until)
    }

    /// The first moment of a day, which daylight saving may have moved from 00:00.
    fn midnight(&self, date: Date) -> Timestamp {
        let zoned = date.to_zoned(self.zone.clone());
        zoned.map_or(Timestamp::MAX, |zoned| moment(zoned.timestamp()))
    }
}

/// Moments before the epoch are the epoch.
fn moment(instant: Instant) -> Timestamp {
    Timestamp::from_micros(u64::try_from(instant.as_microsecond()).unwrap_or(0))
}

impl Clone for Calendar {
    fn clone(&self) -> Self {
        Self {
            unit: self.unit,
            zone: self.zone.clone(),
            last: Mutex::new(self.last.lock().clone()),
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
