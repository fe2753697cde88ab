//! The time ranges of the history.

use std::time::Duration;

use tollgate::Timestamp;

/// A time range, and the length of its intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HistoryRange {
    FiveMinutes,
    Hour,
    Day,
}

impl HistoryRange {
    pub(crate) const ALL: [Self; 3] = [Self::FiveMinutes, Self::Hour, Self::Day];

    /// Parses the name of a range.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.as_str() == text)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::FiveMinutes => "5m",
            Self::Hour => "1h",
            Self::Day => "24h",
        }
    }

    /// Returns the length of an interval in seconds.
    pub(crate) const fn resolution_s(self) -> u64 {
        match self {
            Self::FiveMinutes => 1,
            Self::Hour => 10,
            Self::Day => 300,
        }
    }

    /// Returns the length of an interval.
    pub(crate) const fn resolution(self) -> Duration {
        Duration::from_secs(self.resolution_s())
    }

    pub(crate) const fn resolution_ms(self) -> u64 {
        self.resolution_s() * 1000
    }

    /// Returns the number of intervals.
    pub(crate) const fn intervals(self) -> u64 {
        match self {
            Self::FiveMinutes => 300,
            Self::Hour => 360,
            Self::Day => 288,
        }
    }

    /// Returns the length of the range.
    pub(crate) const fn length(self) -> Duration {
        Duration::from_secs(self.resolution_s() * self.intervals())
    }

    /// Returns the starts of the intervals up to the one that contains `end`, in milliseconds since the Unix epoch.
    pub(crate) fn starts(self, end: Timestamp) -> impl Iterator<Item = u64> {
        let length = self.resolution_ms();
        let last = end.as_micros() / 1000 / length * length;
        (0..self.intervals()).rev().map(move |back| last.saturating_sub(back * length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_their_length_with_aligned_intervals() {
        let end = Timestamp::from_micros(1_700_000_123_456_789);
        for range in HistoryRange::ALL {
            assert_eq!(HistoryRange::parse(range.as_str()), Some(range));
            let starts: Vec<u64> = range.starts(end).collect();
            assert_eq!(starts.len() as u64, range.intervals());
            assert!(starts.iter().all(|start| start % range.resolution_ms() == 0));
            let last = starts.last().unwrap();
            let end = end.as_micros() / 1000;
            assert!((*last..last + range.resolution_ms()).contains(&end));
        }
        assert_eq!(HistoryRange::FiveMinutes.length(), Duration::from_secs(300));
        assert_eq!(HistoryRange::Day.length(), Duration::from_secs(86_400));
        assert_eq!(HistoryRange::parse("7d"), None);
    }
}
