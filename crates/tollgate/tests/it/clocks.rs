//! System, ticking and manual clocks.

use std::time::Duration;

use tollgate::{Clock, ManualClock, SystemClock, TickingClock, Timestamp};

#[test]
fn system_clock_is_shared_by_all_threads() {
    let start = SystemClock::new().now();
    let last = std::thread::spawn(|| SystemClock::new().now()).join().unwrap();
    assert!(last >= start);
    assert!(SystemClock::new().now() >= last);
    // After this test was written, and not in the far future.
    assert!(start.as_micros() > 1_700_000_000_000_000 && start < Timestamp::MAX);
}

#[test]
fn ticking_clock_advances_and_is_never_ahead() {
    let clock = TickingClock::start(Duration::from_micros(50));
    let start = clock.now();
    while clock.now() == start {
        std::thread::yield_now();
    }
    assert!(clock.now() <= SystemClock::new().now());
}

#[test]
fn clones_of_a_manual_clock_share_their_time() {
    let clock = ManualClock::at(Timestamp::from_micros(5));
    let clone = clock.clone();
    clock.advance(Duration::from_micros(7));
    assert_eq!(clone.now(), Timestamp::from_micros(12));
    clone.set(Timestamp::EPOCH);
    assert_eq!(clock.now(), Timestamp::EPOCH);
}
