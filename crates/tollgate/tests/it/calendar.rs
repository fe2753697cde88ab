//! Calendar windows: known dates, and no gaps or overlaps.

use proptest::prelude::*;
use tollgate::Timestamp;
use tollgate::algorithm::{Calendar, CalendarUnit};

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
