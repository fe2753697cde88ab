//! The FIFO queue of callers that wait for one limiter in this process.

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::time::Instant;

use super::max_wait::MaxWait;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex as SyncMutex, timeout_at};

/// The first caller retries after at most 5 s even if the store returned a later time, because another process may have
/// reset the limiter or raised its limit without notifying this one.
const MAX_SLEEP: Duration = Duration::from_secs(5);
/// Reported retry time while the time for the first caller in the queue is unknown.
const UNKNOWN_WAIT: Duration = Duration::from_millis(1);

/// The waiting callers. Only the first calls the store; the others wait until they are first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Held by the first caller. Tokio's mutex is fair, so it is passed on in arrival order.
    first: Mutex<()>,
    waiting: AtomicUsize,
    /// When the store may admit the first caller; none while unknown.
    retry_at: SyncMutex<Option<Instant>>,
    /// Incremented when quota may have become available early (reset, refund).
    epoch: AtomicU64,
    epoch_changed: Notify,
}

impl Queue {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Appends a caller to the queue. Dropping the returned place removes it.
    pub(super) fn join(&self) -> Place<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Place(self)
    }

    /// Returns when the store may admit the first caller, if known.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        *self.retry_at.lock()
    }

    /// Returns the minimum wait of a caller behind the queue.
    pub(super) fn min_wait(&self) -> Duration {
        let wait = self.retry_at().map(|at| at.saturating_duration_since(Instant::now()));
        wait.unwrap_or_default().max(UNKNOWN_WAIT)
    }

    /// Makes the first caller retry immediately, because quota may be available earlier than reported.
    pub(super) fn retry_now(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        self.clear_retry_at();
        self.epoch_changed.notify_waiters();
    }

    fn clear_retry_at(&self) {
        *self.retry_at.lock() = None;
    }

    /// Returns the current epoch. Read it before calling the store, to detect an outdated reply.
    pub(super) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::SeqCst))
    }
}

/// The number of early retries so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Epoch(u64);

/// The retry time from a reply of the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryAt {
    pub(super) instant: Instant,
    /// The epoch before the store was called.
    pub(super) epoch: Epoch,
}

/// A place in the queue.
#[derive(Debug)]
pub(super) struct Place<'q>(&'q Queue);

impl<'q> Place<'q> {
    /// Becomes first if no other caller is.
    pub(super) fn try_first(&self) -> Option<Turn<'q>> {
        self.0.first.try_lock().ok().map(|guard| self.turn(guard))
    }

    /// Waits to become first; none if the maximum wait ends before.
    pub(super) async fn wait_first(&self, max_wait: MaxWait) -> Option<Turn<'q>> {
        let guard = match max_wait {
            MaxWait::None => return self.try_first(),
            MaxWait::Until(end) => timeout_at(end, self.0.first.lock()).await.ok(),
            MaxWait::Unlimited => Some(self.0.first.lock().await),
        };
        guard.map(|guard| self.turn(guard))
    }

    const fn turn(&self, guard: MutexGuard<'q, ()>) -> Turn<'q> {
        Turn { queue: self.0, _guard: guard }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The first place in the queue, until dropped.
#[derive(Debug)]
pub(super) struct Turn<'q> {
    queue: &'q Queue,
    _guard: MutexGuard<'q, ()>,
}

/// Why the first caller retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// Quota should be available.
    Due,
    /// Quota is probably not available yet.
    Early,
}

impl Turn<'_> {
    /// Sleeps until the next attempt.
    pub(super) async fn sleep(&self, retry: RetryAt) -> Wake {
        // Subscribe before the epoch is compared, so that no change is missed.
        let epoch_changed = self.queue.epoch_changed.notified();
        let now = Instant::now();
        *self.queue.retry_at.lock() = Some(retry.instant);
        let wake_at =
            now.checked_add(MAX_SLEEP).map_or(retry.instant, |end| end.min(retry.instant));
        let is_outdated = retry.epoch != self.queue.epoch() || retry.instant <= now;
        if is_outdated
            || timeout_at(wake_at, epoch_changed).await.is_ok()
            || wake_at == retry.instant
        {
            self.queue.clear_retry_at();
            return Wake::Due;
        }
        // The retry time stays valid for the other callers during the early attempt.
        Wake::Early
    }
}

impl Drop for Turn<'_> {
    /// Also clears the retry time if the caller is dropped while it sleeps.
    fn drop(&mut self) {
        self.queue.clear_retry_at();
    }
}
