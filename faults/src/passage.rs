//! Time that really passes: a fault that lasts a minute takes a minute.

use std::thread;
use std::time::{Duration, Instant};

/// Lets this much time pass.
pub fn pass(time: Duration) {
    until(Instant::now() + time);
}

/// Waits for a moment.
pub fn until(moment: Instant) {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        // May end before its time.
        thread::park_timeout(left);
    }
}
