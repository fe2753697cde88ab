//! Virtual time: what is due next, and who waits for it. Nothing sleeps; time moves when nothing is left to
//! do at the present moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;

use tollgate::{ManualClock, Timestamp};

/// The number of a task.
pub(super) type TaskId = usize;

/// Who is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A task that waited.
    Task(TaskId),
    /// Something that was planned, by its number.
    Planned(usize),
}

/// The time of all nodes and of their store, in microseconds.
#[derive(Debug)]
pub(super) struct Clockwork {
    hands: Mutex<Hands>,
    /// What nodes read.
    pub(super) nodes: ManualClock,
    /// What the store reads: the same time, unless it stepped.
    pub(super) store: ManualClock,
}

#[derive(Debug)]
struct Hands {
    now: u64,
    /// How far the store's clock is ahead, as one adds it wrapping.
    ahead: u64,
    due: BinaryHeap<Reverse<(u64, u64, Due)>>,
    count: u64,
    task: TaskId,
}

impl Clockwork {
    pub(super) fn new(now: u64) -> Self {
        let hands = Hands { now, ahead: 0, due: BinaryHeap::new(), count: 0, task: 0 };
        let clock = || ManualClock::at(Timestamp::from_micros(now));
        Self { hands: Mutex::new(hands), nodes: clock(), store: clock() }
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().expect("nobody panics holding it")
    }

    pub(super) fn now(&self) -> u64 {
        self.hands().now
    }

    /// The store's clock says something else from now on.
    pub(super) fn step_store(&self, by: i64) {
        let mut hands = self.hands();
        hands.ahead = hands.ahead.wrapping_add_signed(by);
        self.store.set(Timestamp::from_micros(hands.now.wrapping_add(hands.ahead)));
    }

    pub(super) fn plan(&self, at: u64, due: Due) {
        let mut hands = self.hands();
        hands.count += 1;
        let entry = Reverse((at.max(hands.now), hands.count, due));
        hands.due.push(entry);
    }

    /// Moves to the next moment at which anything is due, if that is before `end`.
    pub(super) fn next(&self, end: u64) -> Option<Due> {
        let mut hands = self.hands();
        let Reverse((at, _, _)) = hands.due.peek()?;
        if *at >= end {
            return None;
        }
        let Reverse((at, _, due)) = hands.due.pop()?;
        self.move_to(&mut hands, at);
        Some(due)
    }

    /// Nothing happens until then.
    pub(super) fn rest(&self, until: u64) {
        self.move_to(&mut self.hands(), until);
    }

    fn move_to(&self, hands: &mut Hands, at: u64) {
        if at > hands.now {
            hands.now = at;
            self.nodes.set(Timestamp::from_micros(at));
            self.store.set(Timestamp::from_micros(at.wrapping_add(hands.ahead)));
        }
    }

    /// Whose turn it is.
    pub(super) fn set_task(&self, task: TaskId) {
        self.hands().task = task;
    }

    pub(super) fn task(&self) -> TaskId {
        self.hands().task
    }

    /// Lets the present task wait.
    pub(super) async fn until(&self, at: u64) {
        let mut is_planned = false;
        poll_fn(|_| {
            if self.now() >= at {
                return Poll::Ready(());
            }
            if !is_planned {
                is_planned = true;
                self.plan(at, Due::Task(self.task()));
            }
            Poll::Pending
        })
        .await;
    }
}
