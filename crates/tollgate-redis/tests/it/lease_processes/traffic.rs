//! The traffic of all workers: idle, then a few takes, then as many as possible, by the wall clock.
//!
//! Workers with leases of a fixed size lease with the few takes, and all workers drain the limit at once when most of the hold
//! is over. What a bucket refills meanwhile must not be admitted in addition. The few takes are shortly before a full second, so that
//! leases of aligned windows would be spent in the next window if they did not end with theirs.

use std::time::{Duration, SystemTime};

use tollgate_testkit::wait::eventually;

const MIN_CYCLE: Duration = Duration::from_secs(4);
/// The time from the few takes until a cycle ends.
const LEASING: Duration = Duration::from_millis(50);
/// The time from the few takes until workers are idle. They are for longer than the longest window.
const BUSY_UNTIL: Duration = Duration::from_millis(1750);

/// What a worker does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A few takes, which lease. The number is that of the cycle.
    Leasing(u64),
    /// As many takes as possible.
    Busy,
    Idle,
}

impl Phase {
    /// Returns the phase now. `hold` is that of the limit.
    pub(super) fn now(hold: Duration) -> Self {
        let (cycle, since_leasing) = cycle_now(hold);
        if since_leasing < hold * 4 / 5 {
            Self::Leasing(cycle)
        } else if since_leasing < BUSY_UNTIL {
            Self::Busy
        } else {
            Self::Idle
        }
    }
}

/// Returns the number of the cycle and the time since its few takes.
fn cycle_now(hold: Duration) -> (u64, Duration) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    // A bucket that refills in eight times the hold is full again before the next cycle.
    let refilled = Duration::from_secs((BUSY_UNTIL + 8 * hold).as_secs() + 1);
    let length = refilled.max(MIN_CYCLE).as_nanos();
    let nanos = (now + LEASING).as_nanos();
    let (cycle, rest) = (nanos / length, nanos % length);
    (u64::try_from(cycle).unwrap(), Duration::from_nanos(u64::try_from(rest).unwrap()))
}

/// Waits until the workers are idle again after the next time that they all leased and drained.
pub(super) fn wait_for_cycle(hold: Duration) {
    let (current, _) = cycle_now(hold);
    eventually("the end of the next cycle", || {
        let (cycle, since_leasing) = cycle_now(hold);
        cycle > current && since_leasing > BUSY_UNTIL
    });
}
