//! What all nodes share: the time, the store, the network, and who judges them.

use std::sync::{Arc, Mutex, MutexGuard};

use tollgate::{Clock, ManualClock, MemoryStore};

use super::check::{Asks, Check, Outcome, Times};
use super::clockwork::{Clockwork, TaskId};
use super::network::{Condition, Purpose};
use super::request::{Act, Request};
use super::setting::Setting;
use crate::answer::Answer;

/// Nodes hold few keys, so that they are made quickly.
pub(super) const MAX_KEYS: usize = 1024;

#[derive(Debug)]
pub(super) struct World {
    pub(super) setting: Arc<Setting>,
    pub(super) time: Clockwork,
    store: Mutex<MemoryStore<ManualClock>>,
    condition: Mutex<Condition>,
    check: Mutex<Check>,
}

impl World {
    pub(super) fn new(setting: Setting, start: u64, timeline: Option<Vec<String>>) -> Self {
        let (setting, time) = (Arc::new(setting), Clockwork::new(start));
        let store = Mutex::new(empty(&time));
        let check = Mutex::new(Check::new(&setting, timeline));
        Self { setting, time, store, condition: Mutex::default(), check }
    }

    pub(super) fn check(&self) -> MutexGuard<'_, Check> {
        self.check.lock().expect("nobody panics holding it")
    }

    pub(super) fn condition(&self) -> MutexGuard<'_, Condition> {
        self.condition.lock().expect("nobody panics holding it")
    }

    /// The store begins anew.
    pub(super) fn empty_store(&self) {
        *self.store.lock().expect("nobody panics holding it") = empty(&self.time);
        self.check().emptied(self.time.now());
    }

    /// The present task asks the store.
    pub(super) fn sent(&self, node: usize, request: &Request) -> Purpose {
        let (task, now) = (self.time.task(), self.time.now());
        self.check().asks(node, task, request, now)
    }

    /// It has its answer, or none.
    pub(super) fn answered(
        &self,
        node: usize,
        request: &Request,
        purpose: Purpose,
        outcome: Outcome,
    ) {
        self.check().answered(node, request, purpose, outcome, self.time.now());
    }

    /// A request arrives and runs.
    pub(super) fn run<T>(
        &self,
        (task, request): (Option<TaskId>, &Request),
        run: impl FnOnce(&MemoryStore<ManualClock>) -> T,
        told: impl Fn(&T) -> Option<Vec<Answer>>,
    ) -> T {
        let answer = run(&self.store.lock().expect("nobody panics holding it"));
        let of_store = self.time.store.now().as_micros();
        let times = Times { now: self.time.now(), of_store };
        self.check().ran(task, request, told(&answer), times);
        answer
    }

    /// Runs what waited for a silent store.
    pub(super) fn run_late(&self) {
        let late = std::mem::take(&mut self.condition().late);
        for request in late {
            let plan = request.plan(&self.setting);
            let run = |store: &MemoryStore<ManualClock>| {
                let decision = match request.act {
                    Act::Take => store.take(&plan),
                    Act::Peek => store.peek(&plan),
                    Act::Refund => store.refund(&plan),
                    Act::Debit { age_us } => {
                        store.debit(&plan, std::time::Duration::from_micros(age_us))
                    }
                    // Of permits a late word does not matter: their slots return by themselves.
                    Act::Release | Act::Renew => return None,
                };
                Some(decision.statuses().iter().map(Answer::from).collect::<Vec<_>>())
            };
            if !matches!(request.act, Act::Release | Act::Renew) {
                self.run((None, &request), run, Clone::clone);
            }
        }
    }

    /// A node did something.
    pub(super) fn acted(&self, node: usize, asks: Asks) {
        self.check().is_asking(node, asks, self.time.now());
    }
}

fn empty(time: &Clockwork) -> MemoryStore<ManualClock> {
    MemoryStore::builder().max_keys(MAX_KEYS).clock(time.store.clone()).build()
}
