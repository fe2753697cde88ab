//! Waiting for what another process or thread will do.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take. The bound is for a machine that is very slow.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// Waits for something that must come to be true.
///
/// # Panics
/// After [`MAX_WAIT`].
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < MAX_WAIT, "still not: {what}");
        pause();
    }
}

/// Asks for something, and again after a while, until it has come to be true.
///
/// # Panics
/// After [`MAX_WAIT`].
pub(crate) fn retry_until(
    what: &str,
    again: Duration,
    mut ask: impl FnMut(),
    mut is_so: impl FnMut() -> bool,
) {
    let mut asked: Option<Instant> = None;
    eventually(what, || {
        let is_so = is_so();
        if !is_so && asked.is_none_or(|asked| asked.elapsed() > again) {
            ask();
            asked = Some(Instant::now());
        }
        is_so
    });
}

/// A moment, for loops that look whether something has come to be.
pub fn pause() {
    thread::park_timeout(Duration::from_millis(5));
}
