//! Waiting for conditions in other processes or threads.

use std::thread;
use std::time::{Duration, Instant};

/// Maximum wait for any condition, for very slow machines.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// Waits until `condition` is true.
///
/// # Panics
/// After [`MAX_WAIT`], with `description` in the message.
pub fn eventually(description: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < MAX_WAIT, "timed out waiting until: {description}");
        pause();
    }
}

/// Runs `action` every `interval` until `condition` is true.
///
/// # Panics
/// After [`MAX_WAIT`], with `description` in the message.
pub(crate) fn retry_until(
    description: &str,
    interval: Duration,
    mut action: impl FnMut(),
    mut condition: impl FnMut() -> bool,
) {
    let mut last: Option<Instant> = None;
    eventually(description, || {
        let is_met = condition();
        if !is_met && last.is_none_or(|last| last.elapsed() > interval) {
            action();
            last = Some(Instant::now());
        }
        is_met
    });
}

/// Sleeps for 5 ms, for polling loops.
pub fn pause() {
    thread::park_timeout(Duration::from_millis(5));
}
