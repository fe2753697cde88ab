//! The current rate of refusals of a key.

use tollgate::Timestamp;

/// Length of the two windows of which the current rate is the average, in microseconds.
const RATE_WINDOW: u64 = 5_000_000;

/// Refusals in the current and the previous rate window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecentCounts {
    /// Number of the current window.
    window: u64,
    current: u64,
    previous: u64,
}

impl RecentCounts {
    pub(super) fn add(&mut self, at: Timestamp) {
        let window = at.as_micros() / RATE_WINDOW;
        if window > self.window {
            self.previous = if window == self.window + 1 { self.current } else { 0 };
            (self.window, self.current) = (window, 0);
        }
        self.current += 1;
    }

    /// Returns the refusals in the window of `now` and the one before it.
    pub(super) const fn at(self, now: Timestamp) -> u64 {
        match (now.as_micros() / RATE_WINDOW).checked_sub(self.window) {
            Some(0) => self.current.saturating_add(self.previous),
            Some(1) => self.current,
            _ => 0,
        }
    }
}

/// Returns the refusals per 1000 s, for a count in the window of `now` and the one before it.
pub(super) fn rate_milli(count: u64, now: Timestamp) -> u64 {
    let covered = RATE_WINDOW + now.as_micros() % RATE_WINDOW;
    count.saturating_mul(1_000_000_000) / covered
}
