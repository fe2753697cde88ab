//! Windows of calendar units, computed from dates.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The units of `envoyproxy/ratelimit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    pub(super) const ALL: [Self; 7] =
        [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year];

    pub(super) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Returns a number that differs between the windows of this unit.
    pub(super) fn window(self, micros: u64) -> u64 {
        let seconds = micros / 1_000_000;
        let date = Timestamp::from_second(seconds.try_into().unwrap()).unwrap();
        let date = date.to_zoned(TimeZone::UTC).date();
        let year = u64::try_from(date.year()).unwrap();
        match self {
            Self::Second => seconds,
            Self::Minute => seconds / 60,
            Self::Hour => seconds / 3600,
            Self::Day => seconds / 86_400,
            // The epoch was a Thursday; weeks start on Monday.
            Self::Week => (seconds / 86_400 + 3) / 7,
            Self::Month => year * 12 + u64::try_from(date.month()).unwrap(),
            Self::Year => year,
        }
    }
}
