//! Virtual time: a queue of due events. Nothing sleeps; time advances to the next event when the present one is
//! done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;

use tollgate::{ManualClock, Timestamp};

/// Index of a task.
pub(super) type TaskId = usize;

/// A due event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A sleeping task wakes up.
    Task(TaskId),
    /// A planned event happens, by its index.
    Planned(usize),
}

/// The time of all nodes and of the shared store, in microseconds.
#[derive(Debug)]
pub(super) struct VirtualTime {
    state: Mutex<State>,
    /// Clock of the nodes.
    pub(super) nodes: ManualClock,
    /// Clock of the shared store: the same time, plus its clock steps.
    pub(super) store: ManualClock,
}

#[derive(Debug)]
struct State {
    now: u64,
    /// Offset of the store's clock, added with wrapping.
    store_offset: u64,
    due: BinaryHeap<Reverse<(u64, u64, Due)>>,
    /// Number of scheduled events, so that events of the same time keep their order.
    count: u64,
    current_task: TaskId,
}

impl VirtualTime {
    pub(super) fn new(now: u64) -> Self {
        let state =
            State { now, store_offset: 0, due: BinaryHeap::new(), count: 0, current_task: 0 };
        let clock = || ManualClock::at(Timestamp::from_micros(now));
        Self { state: Mutex::new(state), nodes: clock(), store: clock() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("lock is not poisoned")
    }

    pub(super) fn now(&self) -> u64 {
        self.state().now
    }

    /// Moves the store's clock by this number of microseconds.
    pub(super) fn step_store(&self, by: i64) {
        let mut state = self.state();
        state.store_offset = state.store_offset.wrapping_add_signed(by);
        self.store.set(Timestamp::from_micros(state.now.wrapping_add(state.store_offset)));
    }

    pub(super) fn schedule(&self, at: u64, due: Due) {
        let mut state = self.state();
        state.count += 1;
        let entry = Reverse((at.max(state.now), state.count, due));
        state.due.push(entry);
    }

    /// Advances to the next event, if it is due before `end`.
    pub(super) fn advance_to_next(&self, end: u64) -> Option<Due> {
        let mut state = self.state();
        let Reverse((at, _, _)) = state.due.peek()?;
        if *at >= end {
            return None;
        }
        let Reverse((at, _, due)) = state.due.pop()?;
        self.set_now(&mut state, at);
        Some(due)
    }

    /// Advances to a time before the next event.
    pub(super) fn advance_to(&self, at: u64) {
        self.set_now(&mut self.state(), at);
    }

    fn set_now(&self, state: &mut State, at: u64) {
        if at > state.now {
            state.now = at;
            self.nodes.set(Timestamp::from_micros(at));
            self.store.set(Timestamp::from_micros(at.wrapping_add(state.store_offset)));
        }
    }

    /// Sets the task that is polled next.
    pub(super) fn set_current_task(&self, task: TaskId) {
        self.state().current_task = task;
    }

    pub(super) fn current_task(&self) -> TaskId {
        self.state().current_task
    }

    /// Suspends the current task until `at`.
    pub(super) async fn sleep_until(&self, at: u64) {
        let mut is_scheduled = false;
        poll_fn(|_| {
            if self.now() >= at {
                return Poll::Ready(());
            }
            if !is_scheduled {
                is_scheduled = true;
                self.schedule(at, Due::Task(self.current_task()));
            }
            Poll::Pending
        })
        .await;
    }
}
