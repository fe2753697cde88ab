//! Units of time: those of descriptor limits as calendar windows, and the unit that a limit is reported in.

use std::time::Duration;

use tollgate::algorithm::CalendarUnit;
use tollgate::{Limit, QuotaError};

use super::proto::{RateLimitUnit, Unit};

/// Returns the limit of a descriptor: a window aligned to the calendar in UTC, or a block if the count is 0.
pub(super) fn calendar_limit(count: u32, unit: CalendarUnit) -> Result<Limit, QuotaError> {
    match count {
        0 => Ok(Limit::block()),
        count => Limit::calendar_window(count.into(), unit, "UTC"),
    }
}

/// Returns the calendar unit of a protobuf enum number; `None` for 0 and unknown numbers.
pub(super) fn calendar_unit(number: i32) -> Option<CalendarUnit> {
    Some(match RateLimitUnit::try_from(number).ok()? {
        RateLimitUnit::Unknown => return None,
        RateLimitUnit::Second => CalendarUnit::Second,
        RateLimitUnit::Minute => CalendarUnit::Minute,
        RateLimitUnit::Hour => CalendarUnit::Hour,
        RateLimitUnit::Day => CalendarUnit::Day,
        RateLimitUnit::Week => CalendarUnit::Week,
        RateLimitUnit::Month => CalendarUnit::Month,
        RateLimitUnit::Year => CalendarUnit::Year,
    })
}

/// Returns the unit that a limit is reported in: that of its calendar, or the one as long as its window. `UNKNOWN` for
/// other windows, for slots and for blocks.
pub(super) fn reported_unit(limit: &Limit) -> Unit {
    let units = [
        (CalendarUnit::Second, Unit::Second),
        (CalendarUnit::Minute, Unit::Minute),
        (CalendarUnit::Hour, Unit::Hour),
        (CalendarUnit::Day, Unit::Day),
        (CalendarUnit::Week, Unit::Week),
    ];
    match limit.spec().align {
        Some(CalendarUnit::Month) => return Unit::Month,
        Some(CalendarUnit::Year) => return Unit::Year,
        _ => {}
    }
    let window = Some(limit.window()).filter(|window| *window > Duration::ZERO);
    let found = units.into_iter().find(|(unit, _)| window.is_some() && unit.length() == window);
    found.map_or(Unit::Unknown, |(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use tollgate::Quota;

    use super::*;

    #[test]
    fn every_unit_is_read_and_reported_by_its_number() {
        let expected = [
            (1, CalendarUnit::Second),
            (2, CalendarUnit::Minute),
            (3, CalendarUnit::Hour),
            (4, CalendarUnit::Day),
            (5, CalendarUnit::Month),
            (6, CalendarUnit::Year),
            (7, CalendarUnit::Week),
        ];
        for (number, unit) in expected {
            assert_eq!(calendar_unit(number), Some(unit));
            let limit = calendar_limit(3, unit).unwrap();
            assert_eq!((reported_unit(&limit) as i32, limit.count()), (number, 3), "{unit:?}");
        }
        for number in [0, 8, -1, i32::MAX] {
            assert_eq!(calendar_unit(number), None, "{number}");
        }
    }

    #[test]
    fn windows_of_other_lengths_have_no_unit() {
        let rolling = |seconds| {
            Limit::fixed_window(Quota::try_new(5, Duration::from_secs(seconds)).unwrap()).unwrap()
        };
        for (seconds, unit) in [
            (1, Unit::Second),
            (60, Unit::Minute),
            (3600, Unit::Hour),
            (86_400, Unit::Day),
            (604_800, Unit::Week),
            (10, Unit::Unknown),
            (90, Unit::Unknown),
            (30 * 86_400, Unit::Unknown),
        ] {
            assert_eq!(reported_unit(&rolling(seconds)), unit, "{seconds} s");
        }
        let slots = Limit::concurrency(3, Duration::from_secs(60)).unwrap();
        assert_eq!(reported_unit(&slots), Unit::Unknown);
        assert_eq!(reported_unit(&calendar_limit(0, CalendarUnit::Day).unwrap()), Unit::Unknown);
    }
}
