//! Turns among the callers of one limiter in this process: who came first is first.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex as Cell;
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::time::{Instant, timeout_at};

use super::max_wait::Patience;

/// The longest that the first sleeps before it asks again, though it was told of no room until later: another
/// process may have reset the limiter or raised its limit, and tells nobody here.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);
/// What is said to those who cannot be told when there may be room for the first in the queue.
const MOMENT: Duration = Duration::from_millis(1);

/// Those who wait. Only the first asks the store; the others wait for its place.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Whoever holds it is first; it is handed on in the order it was asked for.
    turn: Mutex<()>,
    waiting: AtomicUsize,
    /// When there may be room for the first; none while that is not known.
    room_at: Cell<Option<Instant>>,
    /// How often there may have been room sooner than was told.
    look: AtomicU64,
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

    /// When there may be room for the first, if that is known.
    pub(super) fn room_at(&self) -> Option<Instant> {
        *self.room_at.lock()
    }

    /// The least that others have to wait.
    pub(super) fn least_wait(&self) -> Duration {
        let wait = self.room_at().map(|at| at.saturating_duration_since(Instant::now()));
        wait.unwrap_or_default().max(MOMENT)
    }

    /// Lets the first ask now, because there may be room sooner than anybody was told so far.
    pub(super) fn look_again(&self) {
        self.look.fetch_add(1, Ordering::SeqCst);
        self.forget_room();
        self.looks.notify_waiters();
    }

    fn forget_room(&self) {
        *self.room_at.lock() = None;
    }

    /// To be had before the store is asked: it tells whether the answer is still true.
    pub(super) fn look(&self) -> Look {
        Look(self.look.load(Ordering::SeqCst))
    }
}

/// How often there had been a reason to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look(u64);

/// What a store told somebody who has to wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct NotBefore {
    pub(super) then: Instant,
    /// From before it was asked.
    pub(super) look: Look,
}

/// A place in the queue.
#[derive(Debug)]
pub(super) struct Place<'q>(&'q Queue);

impl<'q> Place<'q> {
    /// First, if nobody is.
    pub(super) fn first_at_once(&self) -> Option<Turn<'q>> {
        self.0.turn.try_lock().ok().map(|guard| self.turn(guard))
    }

    /// Waits to be first; none if patience ends before.
    pub(super) async fn first(&self, patience: Patience) -> Option<Turn<'q>> {
        let turn = match patience {
            Patience::None => return self.first_at_once(),
            Patience::Until(end) => timeout_at(end, self.0.turn.lock()).await.ok(),
            Patience::Endless => Some(self.0.turn.lock().await),
        };
        turn.map(|guard| self.turn(guard))
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

/// Being first, until dropped.
#[derive(Debug)]
pub(super) struct Turn<'q> {
    queue: &'q Queue,
    _guard: MutexGuard<'q, ()>,
}

/// Why the first asks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awake {
    /// There may be room.
    InTime,
    /// Most likely there is none yet.
    Early,
}

impl Turn<'_> {
    /// Waits until it is worth asking.
    pub(super) async fn sleep(&self, told: NotBefore) -> Awake {
        // Before the look, so that none is missed in between.
        let looks = self.queue.looks.notified();
        let now = Instant::now();
        *self.queue.room_at.lock() = Some(told.then);
        let until = now.checked_add(LONGEST_SLEEP).map_or(told.then, |end| end.min(told.then));
        let is_old = told.look != self.queue.look() || told.then <= now;
        if is_old || timeout_at(until, looks).await.is_ok() || until == told.then {
            self.queue.forget_room();
            return Awake::InTime;
        }
        // What was told still holds for the others while it is asked again.
        Awake::Early
    }
}

impl Drop for Turn<'_> {
    /// Also if it is dropped while it sleeps.
    fn drop(&mut self) {
        self.queue.forget_room();
    }
}
