//! Locks of the model checker with the interface of `parking_lot`, and timers and tasks with that of Tokio.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use shuttle::future::{AbortHandle, JoinHandle};
pub use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard, atomic};

/// A mutex that a panic does not poison: the model checker ends a run at the first panic.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Creates a mutex.
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks it if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// A read-write lock that a panic does not poison.
#[derive(Debug, Default)]
pub struct RwLock<T>(shuttle::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Creates a lock.
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::RwLock::new(value))
    }

    /// Waits until no thread writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread reads or writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    /// Number of timers that may still be set in this run. All threads of a run are in one thread of the system.
    static TIMERS: Cell<usize> = const { Cell::new(0) };

    /// The tasks of the current run.
    static TASKS: RefCell<Vec<JoinHandle<()>>> = const { RefCell::new(Vec::new()) };
}

/// A timer, which fires at any time if the run has one left.
#[derive(Debug, Default)]
pub struct Timer(Option<Arc<AlarmState>>);

#[derive(Debug)]
struct AlarmState {
    has_fired: AtomicBool,
    waker: std::sync::Mutex<Waker>,
}

impl Timer {
    /// Returns whether the timer has fired, and wakes the task when it does. A task of its own fires it, so that the
    /// scheduler selects the time.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.0.is_none() {
            let Some(left) = TIMERS.get().checked_sub(1) else { return Poll::Pending };
            TIMERS.set(left);
        }
        let waker = context.waker();
        let alarm = self.0.get_or_insert_with(|| {
            let (has_fired, waker) = (AtomicBool::new(false), std::sync::Mutex::new(waker.clone()));
            let alarm = Arc::new(AlarmState { has_fired, waker });
            let fired = Arc::clone(&alarm);
            spawn(async move {
                fired.has_fired.store(true, Ordering::SeqCst);
                let waker = fired.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
                waker.wake();
            });
            alarm
        });
        waker.clone_into(&mut alarm.waker.lock().unwrap_or_else(PoisonError::into_inner));
        if alarm.has_fired.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// The error of [`timeout_at`].
#[derive(Debug, Clone, Copy)]
pub struct Elapsed;

/// As `tokio::time::timeout_at`, with a time that the scheduler selects.
///
/// # Errors
/// The timer has fired before the future was ready.
pub async fn timeout_at<I, F: Future>(_: I, future: F) -> Result<F::Output, Elapsed> {
    let (mut future, mut timer) = (pin!(future), Timer::default());
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => timer.poll(context).map(|()| Err(Elapsed)),
    })
    .await
}

/// As `tokio::runtime::Handle`: spawns tasks of the model checker.
#[derive(Debug, Clone, Copy)]
pub struct Handle;

impl Handle {
    /// Returns the runtime of the run.
    ///
    /// # Errors
    /// Never: a model has a runtime.
    pub const fn try_current() -> Result<Self, Elapsed> {
        Ok(Self)
    }

    /// Spawns a task, which [`join_tasks`] joins.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Spawned {
        spawn(work)
    }
}

/// A task that [`join_tasks`] joins.
#[derive(Debug)]
pub struct Spawned {
    _task: AbortHandle,
}

fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Spawned {
    let task = shuttle::future::spawn(work);
    let spawned = Spawned { _task: task.abort_handle() };
    TASKS.with_borrow_mut(|tasks| tasks.push(task));
    spawned
}

/// Begins a run, in which this number of timers fire at any time, and later ones never do.
pub fn begin_run(timers: usize) {
    TIMERS.set(timers);
    // Those of a run that has failed.
    TASKS.take().into_iter().for_each(std::mem::forget);
}

/// Waits until all tasks of the run have ended. A task that never ends is a deadlock.
pub fn join_tasks() {
    while let Some(task) = TASKS.with_borrow_mut(Vec::pop) {
        // The result of an aborted task is an error.
        let _ = shuttle::future::block_on(task);
    }
}
