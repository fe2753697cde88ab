//! State shared by all nodes: virtual time, the shared store, the network, and the checker.

use std::sync::{Arc, Mutex, MutexGuard};

use tollgate::{Clock, ManualClock, MemoryStore};

use super::check::{Check, Outcome, Times};
use super::network::{NetworkState, Purpose};
use super::request::{Action, Request};
use super::scenario::Scenario;
use super::virtual_time::{TaskId, VirtualTime};
use crate::answer::Answer;

/// Capacity of every memory store in keys; small, so that creating one is fast.
pub(super) const MAX_KEYS: usize = 1024;

#[derive(Debug)]
pub(super) struct World {
    pub(super) scenario: Arc<Scenario>,
    pub(super) time: VirtualTime,
    store: Mutex<MemoryStore<ManualClock>>,
    network: Mutex<NetworkState>,
    check: Mutex<Check>,
}

impl World {
    pub(super) fn new(scenario: Scenario, start: u64, timeline: Option<Vec<String>>) -> Self {
        let (scenario, time) = (Arc::new(scenario), VirtualTime::new(start));
        let store = Mutex::new(empty(&time));
        let check = Mutex::new(Check::new(&scenario, timeline));
        Self { scenario, time, store, network: Mutex::default(), check }
    }

    pub(super) fn check(&self) -> MutexGuard<'_, Check> {
        self.check.lock().expect("lock is not poisoned")
    }

    pub(super) fn network(&self) -> MutexGuard<'_, NetworkState> {
        self.network.lock().expect("lock is not poisoned")
    }

    /// Deletes the store's data.
    pub(super) fn empty_store(&self) {
        *self.store.lock().expect("lock is not poisoned") = empty(&self.time);
        self.check().store_emptied(self.time.now());
    }

    /// Steps the clock of the store. Before, the store drops its fresh keys. It may do so at any time, and which ones it
    /// drops depends on their hashes, but only a clock that steps back can show it: the keys would count again.
    pub(super) fn step_store_clock(&self, by: i64) {
        self.store.lock().expect("lock is not poisoned").sweep(usize::MAX);
        let store_now = self.time.store.now().as_micros();
        self.time.step_store(by);
        self.check().store_clock_stepped(Times { now: self.time.now(), store_now });
    }

    /// Checks a call that the current task sends to the store.
    pub(super) fn check_call(&self, node: usize, request: &Request) -> Purpose {
        let (task, now) = (self.time.current_task(), self.time.now());
        self.check().call_sent(node, task, request, now)
    }

    /// Checks the end of a call.
    pub(super) fn check_outcome(
        &self,
        node: usize,
        request: &Request,
        purpose: Purpose,
        outcome: Outcome,
    ) {
        self.check().call_ended(node, request, purpose, outcome, self.time.now());
    }

    /// Runs a call in the store, and checks its answers.
    pub(super) fn run<T>(
        &self,
        (task, request): (Option<TaskId>, &Request),
        run: impl FnOnce(&MemoryStore<ManualClock>) -> T,
        answers: impl Fn(&T) -> Option<Vec<Answer>>,
    ) -> T {
        let reply = run(&self.store.lock().expect("lock is not poisoned"));
        let store_now = self.time.store.now().as_micros();
        let times = Times { now: self.time.now(), store_now };
        self.check().call_ran(task, request, answers(&reply), times);
        reply
    }

    /// Runs the requests that waited for a silent store.
    pub(super) fn run_late(&self) {
        let late_requests = std::mem::take(&mut self.network().late_requests);
        for request in late_requests {
            let plan = request.plan(&self.scenario);
            let run = |store: &MemoryStore<ManualClock>| {
                let decision = match request.action {
                    Action::Take => store.take(&plan),
                    Action::Peek => store.peek(&plan),
                    Action::Refund => store.refund(&plan),
                    Action::Debit { age_us } => {
                        store.debit(&plan, std::time::Duration::from_micros(age_us))
                    }
                    // Not simulated: slots expire anyway.
                    Action::Release | Action::Renew => return None,
                };
                Some(decision.statuses().iter().map(Answer::from).collect::<Vec<_>>())
            };
            if !matches!(request.action, Action::Release | Action::Renew) {
                self.run((None, &request), run, Clone::clone);
            }
        }
    }
}

fn empty(time: &VirtualTime) -> MemoryStore<ManualClock> {
    MemoryStore::builder().max_keys(MAX_KEYS).clock(time.store.clone()).build()
}
