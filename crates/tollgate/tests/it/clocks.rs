//! Clocks.

use std::time::Duration;

use tollgate::{Clock, ManualClock, SystemClock, TickingClock, Timestamp};

#[test]
fn the_system_clock_is_one_clock_on_every_thread() {
    let start = SystemClock::new().now();
    let last = std::thread::spawn(|| SystemClock::new().now()).join().unwrap();
    assert!(last >= start);
    assert!(SystemClock::new().now() >= last);
    // Some time after this was written, and not in the far future.
    assert!(start.as_micros() > 1_700_000_000_000_000 && start < Timestamp::MAX);
}

#[test]
fn a_ticking_clock_ticks_and_never_runs_ahead() {
    let clock = TickingClock::start(Duration::from_micros(50));
    let start = clock.now();
    while clock.now() == start {
        std::thread::yield_now();
    }
    assert!(clock.now() <= SystemClock::new().now());
}

#[test]
fn clones_of_a_manual_clock_move_together() {
    let clock = ManualClock::at(Timestamp::from_micros(5));
    let clone = clock.clone();
    clock.advance(Duration::from_micros(7));
    assert_eq!(clone.now(), Timestamp::from_micros(12));
    clone.set(Timestamp::EPOCH);
    assert_eq!(clock.now(), Timestamp::EPOCH);
}
