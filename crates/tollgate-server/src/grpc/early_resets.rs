//! Rapid reset: a connection whose client opens requests and resets them at once is closed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// A request that is reset this soon was not waiting for a slow reply. Callers have longer deadlines.
const EARLY: Duration = Duration::from_millis(10);

/// Maximum number of early resets, each completed request deducted.
const MAX_EARLY_RESETS: u32 = 100;

/// The early resets of a connection.
#[derive(Debug, Default)]
pub(super) struct EarlyResets {
    count: AtomicU32,
    exceeded: Notify,
}

/// A request of a connection. Counts an early reset if it is dropped before it is complete.
#[derive(Debug)]
pub(super) struct OpenRequest<'r> {
    resets: &'r EarlyResets,
    begun: Instant,
    is_complete: bool,
}

impl EarlyResets {
    /// Records a request that began at this time.
    pub(super) const fn open(&self, begun: Instant) -> OpenRequest<'_> {
        OpenRequest { resets: self, begun, is_complete: false }
    }

    /// Waits until there are too many early resets.
    pub(super) async fn exceeded(&self) {
        self.exceeded.notified().await;
    }

    /// Counts a request that was reset at this age, if that is early.
    fn count_reset(&self, age: Duration) {
        if age < EARLY && self.update(|count| count.saturating_add(1)) >= MAX_EARLY_RESETS {
            self.exceeded.notify_one();
        }
    }

    fn count_completed(&self) {
        // Reading first is cheaper than writing, and usually enough.
        if self.count.load(Ordering::Relaxed) > 0 {
            self.update(|count| count.saturating_sub(1));
        }
    }

    fn update(&self, change: impl Fn(u32) -> u32) -> u32 {
        let update = |count| Some(change(count));
        let (Ok(count) | Err(count)) =
            self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        count
    }
}

impl OpenRequest<'_> {
    /// Records that the request has its response.
    pub(super) fn complete(mut self) {
        self.is_complete = true;
        self.resets.count_completed();
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.resets.count_reset(self.begun.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn is_exceeded(resets: &EarlyResets) -> bool {
        resets.exceeded().now_or_never().is_some()
    }

    #[test]
    fn completed_and_slow_requests_are_no_flood() {
        let resets = EarlyResets::default();
        for _ in 0..1000 {
            resets.count_reset(Duration::ZERO);
            resets.count_completed();
            resets.count_reset(EARLY);
        }
        assert!(!is_exceeded(&resets));
        for _ in 0..=MAX_EARLY_RESETS {
            assert!(!is_exceeded(&resets));
            resets.count_reset(Duration::ZERO);
        }
        assert!(is_exceeded(&resets));
    }
}
