//! Turns among the callers of one limiter in this process: who came first is first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex as Cell;
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::time::{Instant, timeout_at};

use super::patience::Patience;

/// What is said to those who cannot be told when the first in the queue asks again.
const MOMENT: Duration = Duration::from_millis(1);

/// Those who wait. Only the first asks the store; the others wait for its place.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Whoever holds it is first; it is handed on in the order it was asked for.
    turn: Mutex<()>,
    waiting: AtomicUsize,
    /// When the first asks again; none while it asks.
    asks_at: Cell<Option<Instant>>,
    looks: Notify,
}

impl Queue {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Joins the end of the queue, to leave it when dropped.
    pub(super) fn join(&self) -> Place<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Place(self)
    }

    /// When the first asks again, if that is known.
    pub(super) fn asks_at(&self) -> Option<Instant> {
        *self.asks_at.lock()
    }

    /// The least that others have to wait.
    pub(super) fn least_wait(&self) -> Duration {
        let wait = self.asks_at().map(|at| at.saturating_duration_since(Instant::now()));
        wait.unwrap_or_default().max(MOMENT)
    }

    /// Lets the first ask now, because there may be room sooner than it was told.
    pub(super) fn look_again(&self) {
        self.looks.notify_waiters();
    }
}

/// A place in the queue.
#[derive(Debug)]
pub(super) struct Place<'q>(&'q Queue);

impl<'q> Place<'q> {
    /// Waits to be first; none if patience ends before.
    pub(super) async fn first(&self, patience: Patience) -> Option<Turn<'q>> {
        let turn = match patience {
            Patience::None => self.0.turn.try_lock().ok(),
            Patience::Until(end) => timeout_at(end, self.0.turn.lock()).await.ok(),
            Patience::Endless => Some(self.0.turn.lock().await),
        };
        turn.map(|guard| Turn { queue: self.0, _guard: guard })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Being first, until dropped.
#[derive(Debug)]
pub(super) struct Turn<'q> {
    queue: &'q Queue,
    _guard: MutexGuard<'q, ()>,
}

impl Turn<'_> {
    /// Waits until then, or until it is worth asking before.
    pub(super) async fn sleep_until(&self, then: Instant) {
        if then <= Instant::now() {
            return;
        }
        let looks = self.queue.looks.notified();
        *self.queue.asks_at.lock() = Some(then);
        // Also if this is dropped while it sleeps.
        let _awake = Awake(self.queue);
        let _ = timeout_at(then, looks).await;
    }
}

struct Awake<'q>(&'q Queue);

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        *self.0.asks_at.lock() = None;
    }
}
