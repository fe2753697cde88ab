//! Real waiting: a fault that lasts a minute takes a minute.

use std::thread;
use std::time::{Duration, Instant};

/// Waits for a duration.
pub fn wait_for(time: Duration) {
    wait_until(Instant::now() + time);
}

/// Waits until a point in time.
pub fn wait_until(deadline: Instant) {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        // May return early.
        thread::park_timeout(left);
    }
}
