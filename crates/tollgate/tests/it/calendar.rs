//! Calendar windows: known dates, and no gaps or overlaps.

use std::collections::HashSet;
use std::time::Duration;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use tollgate::algorithm::{Calendar, CalendarUnit};
use tollgate::{Limit, LocalLimiter, ManualClock, Timestamp};

fn seconds(text: &str) -> u64 {
    let timestamp: jiff::Timestamp = text.parse().unwrap();
    u64::try_from(timestamp.as_second()).unwrap()
}

#[track_caller]
fn assert_window(unit: CalendarUnit, zone: &str, now: &str, start: &str, end: &str) {
    let calendar = Calendar::new(unit, zone).unwrap();
    let window = calendar.window(Timestamp::from_micros(seconds(now) * 1_000_000));
    let found = (window.start.as_micros() / 1_000_000, window.end.as_micros() / 1_000_000);
    assert_eq!(found, (seconds(start), seconds(end)), "{unit:?} of {now} in {zone}");
}

#[test]
fn windows_of_all_units_in_utc() {
    use CalendarUnit::{Day, Hour, Minute, Month, Second, Week, Year};
    let now = "2026-11-15T19:45:07Z";
    assert_window(Second, "UTC", now, "2026-11-15T19:45:07Z", "2026-11-15T19:45:08Z");
    assert_window(Minute, "UTC", now, "2026-11-15T19:45:00Z", "2026-11-15T19:46:00Z");
    assert_window(Hour, "UTC", now, "2026-11-15T19:00:00Z", "2026-11-15T20:00:00Z");
    assert_window(Day, "UTC", now, "2026-11-15T00:00:00Z", "2026-11-16T00:00:00Z");
    // A Sunday: its week started on Monday the 9th.
    assert_window(Week, "UTC", now, "2026-11-09T00:00:00Z", "2026-11-16T00:00:00Z");
    assert_window(Month, "UTC", now, "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z");
    assert_window(Year, "UTC", now, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    assert_window(
        Month,
        "UTC",
        "2028-02-29T23:59:59Z",
        "2028-02-01T00:00:00Z",
        "2028-03-01T00:00:00Z",
    );
}

#[test]
fn daylight_saving_days_have_23_or_25_hours() {
    let zone = "America/New_York";
    let day = CalendarUnit::Day;
    assert_window(
        day,
        zone,
        "2026-03-08T12:00:00Z",
        "2026-03-08T05:00:00Z",
        "2026-03-09T04:00:00Z",
    );
    assert_window(
        day,
        zone,
        "2026-11-01T12:00:00Z",
        "2026-11-01T04:00:00Z",
        "2026-11-02T05:00:00Z",
    );
}

#[test]
fn repeated_hour_is_two_windows() {
    let (zone, hour) = ("America/New_York", CalendarUnit::Hour);
    assert_window(
        hour,
        zone,
        "2026-11-01T05:30:00Z",
        "2026-11-01T05:00:00Z",
        "2026-11-01T06:00:00Z",
    );
    assert_window(
        hour,
        zone,
        "2026-11-01T06:00:00Z",
        "2026-11-01T06:00:00Z",
        "2026-11-01T07:00:00Z",
    );
}

#[test]
fn zones_with_fractional_offsets_and_half_hour_changes() {
    let hour = CalendarUnit::Hour;
    let kathmandu = "Asia/Kathmandu";
    assert_window(
        hour,
        kathmandu,
        "2026-11-15T19:20:00Z",
        "2026-11-15T19:15:00Z",
        "2026-11-15T20:15:00Z",
    );
    // At 15:00Z the clock goes back from 02:00 to 01:30, which splits the hour from 01:00.
    let lord_howe = "Australia/Lord_Howe";
    assert_window(
        hour,
        lord_howe,
        "2026-04-04T14:59:59Z",
        "2026-04-04T14:00:00Z",
        "2026-04-04T15:00:00Z",
    );
    assert_window(
        hour,
        lord_howe,
        "2026-04-04T15:00:00Z",
        "2026-04-04T15:00:00Z",
        "2026-04-04T15:30:00Z",
    );
}

proptest! {
    #[test]
    fn windows_have_no_gaps_or_overlaps(
        seconds in 0u64..7_000_000_000,
        unit in prop::sample::select(&CalendarUnit::ALL[..]),
        zone in prop::sample::select(&["UTC", "Europe/Zurich", "Australia/Lord_Howe", "Asia/Gaza"][..]),
    ) {
        let calendar = Calendar::new(unit, zone).unwrap();
        let now = Timestamp::from_micros(seconds * 1_000_000 + 999_999);
        let window = calendar.window(now);
        prop_assert!(window.contains(&now));
        prop_assert_eq!(calendar.window(window.start), window.clone());
        prop_assert_eq!(calendar.window(window.end).start, window.end);
        // A new calendar has an empty cache: the result does not depend on it.
        prop_assert_eq!(Calendar::new(unit, zone).unwrap().window(now), window);
    }
}

/// At 00:01 on 7 November 2010, clocks in St John's went back to 23:01 on the day before.
#[test]
fn clocks_that_go_back_over_midnight_do_not_end_a_window() {
    let (day, zone) = (CalendarUnit::Day, "America/St_Johns");
    let (start, end) = ("2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z");
    for now in [start, "2010-11-07T02:31:00Z", "2010-11-07T03:30:00Z", "2010-11-08T03:29:59Z"] {
        assert_window(day, zone, now, start, end);
    }
    assert_window(day, zone, "2010-11-07T02:29:59Z", "2010-11-06T02:30:00Z", start);
    // A take just after the change, which once computed a negative time to the end.
    let limit = Limit::calendar_window(5, day, zone).unwrap();
    let clock =
        ManualClock::at(Timestamp::from_micros(seconds("2010-11-07T02:31:00Z") * 1_000_000));
    let limiter = LocalLimiter::builder().limit(limit).clock(clock).build().unwrap();
    let decision = limiter.take("k");
    assert!(decision.is_allowed());
    assert_eq!(decision.reset_after(), Some(Duration::from_secs(24 * 3600 + 59 * 60)));
}

/// A day whose 00:00 is skipped begins with the change that skips it.
#[test]
fn day_without_a_midnight_begins_with_the_change() {
    for (zone, begin) in [
        ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),
        // Clocks went from 23:59:59 on 29 December to 00:00 on 31 December.
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ] {
        let calendar = Calendar::new(CalendarUnit::Day, zone).unwrap();
        let begin = Timestamp::from_micros(seconds(begin) * 1_000_000);
        assert_eq!(calendar.window(begin).start, begin, "{zone}");
    }
}

/// Every change of the UTC offset in every zone, from 1970 to 2100: windows contain their times, and cover all time once.
#[test]
fn windows_partition_time_at_every_change_of_every_zone() {
    let mut zones = HashSet::new();
    let mut changes = 0;
    for name in jiff::tz::db().available() {
        let zone = TimeZone::get(name.as_str()).unwrap();
        let of_zone = changes_until_2100(&zone);
        // Many names stand for the same zone.
        if !zones.insert(of_zone.clone()) {
            continue;
        }
        changes += of_zone.len();
        let calendars = CalendarUnit::ALL.map(|unit| Calendar::new(unit, name.as_str()).unwrap());
        for (change, _) in of_zone {
            let day = zone.to_datetime(change).day();
            let at = Timestamp::from_micros(u64::try_from(change.as_microsecond()).unwrap());
            for calendar in &calendars {
                let is_near = match calendar.unit() {
                    CalendarUnit::Hour | CalendarUnit::Day => true,
                    CalendarUnit::Week => zone.to_datetime(change).weekday() != Weekday::Wednesday,
                    // Windows of the others end far from this change, or at any change like those of hours.
                    _ => day <= 2 || day >= 28,
                };
                if is_near {
                    assert_partition(calendar, at);
                }
            }
        }
    }
    assert!(zones.len() > 200 && changes > 10_000, "{} zones, {changes} changes", zones.len());
}

/// The changes of the offset of a zone, with the new offsets.
fn changes_until_2100(zone: &TimeZone) -> Vec<(jiff::Timestamp, i32)> {
    let until = "2101-01-01T00:00:00Z".parse().unwrap();
    zone.following(jiff::Timestamp::UNIX_EPOCH)
        .map(|change| (change.timestamp(), change.offset().seconds()))
        .take_while(|(at, _)| *at < until)
        .collect()
}

/// Asserts that the windows around a time contain their times and have neither gaps nor overlaps.
fn assert_partition(calendar: &Calendar, at: Timestamp) {
    // A calendar remembers its last window. That of the epoch contains none of these times.
    let computed = |at| {
        let _ = calendar.window(Timestamp::EPOCH);
        calendar.window(at)
    };
    let before = Timestamp::from_micros(at.as_micros() - 1);
    for now in [before, at + Duration::from_secs(60), at + Duration::from_secs(3_660)] {
        let found = computed(now);
        assert!(found.contains(&now), "{calendar:?} at {now:?}: {found:?}");
        assert_eq!(calendar.window(found.end).start, found.end, "{calendar:?} after {now:?}");
        assert_eq!(calendar.window(found.start), found, "{calendar:?} at the start, from {now:?}");
        let last = Timestamp::from_micros(found.end.as_micros() - 1);
        assert_eq!(computed(last), found, "{calendar:?} at the end, from {now:?}");
    }
}
