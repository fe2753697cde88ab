//! Checks of everything that must hold at every moment, whatever the faults.

mod bounds;
mod calls;
mod decisions;
mod expected_ledger;
mod node_model;
mod replay;
mod replaying_key;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use node_model::NodeModel;

use super::Figures;
use super::request::{Action, Oracles, Request};
use super::scenario::Scenario;
use super::virtual_time::TaskId;
use crate::answer::Answer;

/// What a task does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Maintains,
    Serves { action: Action, permit: Option<u64> },
}

/// The store's answers to a caller's request, and the time when it ran.
#[derive(Debug, Clone)]
struct StoreReply {
    answers: Option<Vec<Answer>>,
    at: u64,
}

/// An admitted take, or a refund.
#[derive(Debug, Clone, Copy)]
struct Admission {
    at: u64,
    cost: u64,
    by: DecidedBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecidedBy {
    Store,
    Node(usize),
}

/// Slots in use.
#[derive(Debug, Clone, Copy)]
struct HeldSlots {
    key: usize,
    permit: Option<u64>,
    cost: u64,
    from: u64,
    until: u64,
}

/// Stage of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Hour,
    /// After the hour: no faults, and all limits are full.
    Full,
    /// All limits are full, and the store is lost once more.
    FullAndLost,
}

/// The checker: observes calls, events and decisions, and models every node and the store.
#[derive(Debug)]
pub(super) struct Check {
    scenario: Arc<Scenario>,
    failure: Option<String>,
    timeline: Option<Vec<String>>,
    pub(super) figures: Figures,
    pub(super) stage: Stage,
    store: Oracles,
    nodes: Vec<NodeModel>,
    roles: HashMap<TaskId, Role>,
    replies: HashMap<TaskId, StoreReply>,
    /// Tasks whose refund may have run in the store.
    uncertain_refunds: HashSet<TaskId>,
    /// Admissions of each key.
    admissions: Vec<Vec<Admission>>,
    /// Refunds of each key, each where it was credited.
    refunds: Vec<Vec<Admission>>,
    held_slots: Vec<HeldSlots>,
    /// Times when the store lost its data or its clock stepped.
    disruptions: Vec<u64>,
    /// Times of debits with an age: a fixed window that starts with one ends sooner.
    aged_debits: Vec<u64>,
}

impl Check {
    pub(super) fn new(scenario: &Arc<Scenario>, timeline: Option<Vec<String>>) -> Self {
        let keys = scenario.keys.len();
        Self {
            scenario: Arc::clone(scenario),
            failure: None,
            timeline,
            figures: Figures::default(),
            stage: Stage::Hour,
            store: Oracles::new(keys),
            nodes: Vec::new(),
            roles: HashMap::new(),
            replies: HashMap::new(),
            uncertain_refunds: HashSet::new(),
            admissions: vec![Vec::new(); keys],
            refunds: vec![Vec::new(); keys],
            held_slots: Vec::new(),
            disruptions: Vec::new(),
            aged_debits: Vec::new(),
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns the first failure, with the timeline if it was recorded.
    pub(super) fn take_failure(&mut self) -> Option<(String, Vec<String>)> {
        let reason = self.failure.take()?;
        Some((reason, self.timeline.take().unwrap_or_default()))
    }

    pub(super) fn take_timeline(&mut self) -> Vec<String> {
        self.timeline.take().unwrap_or_default()
    }

    /// Adds a line to the timeline.
    pub(super) fn log(&mut self, now: u64, line: impl FnOnce() -> String) {
        if let Some(timeline) = self.timeline.as_mut().filter(|_| self.failure.is_none()) {
            timeline.push(format!("{now:>20} {}", line()));
        }
    }

    fn fail(&mut self, now: u64, reason: impl FnOnce() -> String) {
        if self.failure.is_none() {
            let reason = reason();
            self.log(now, || format!("FAILED: {reason}"));
            self.failure = Some(reason);
        }
    }

    /// Fails unless the condition holds.
    fn require(&mut self, now: u64, condition: bool, reason: impl FnOnce() -> String) {
        if !condition {
            self.fail(now, reason);
        }
    }

    pub(super) fn set_role(&mut self, task: TaskId, role: Role) {
        self.roles.insert(task, role);
    }

    pub(super) fn is_maintenance(&self, task: TaskId) -> bool {
        matches!(self.roles.get(&task), Some(Role::Maintains))
    }

    pub(super) fn node_joined(&mut self, nodes: u32, now: u64) {
        let scenario = Arc::clone(&self.scenario);
        self.nodes.push(NodeModel::new(&scenario, nodes, now));
    }

    pub(super) fn node_count_changed(&mut self, node: usize, nodes: u32, now: u64) {
        let scenario = Arc::clone(&self.scenario);
        self.nodes[node].set_nodes(&scenario, nodes, now);
    }

    /// The store lost its data.
    pub(super) fn store_emptied(&mut self, now: u64) {
        self.store = Oracles::new(self.scenario.keys.len());
        self.store_disrupted(now);
    }

    /// The clock of the store stepped. Before, at `store_now`, the store dropped its fresh keys.
    pub(super) fn store_clock_stepped(&mut self, times: Times) {
        self.store.drop_fresh(&self.scenario.specs, times.store_now);
        self.store_disrupted(times.now);
    }

    fn store_disrupted(&mut self, now: u64) {
        self.disruptions.push(now);
    }

    /// Sets whether the store replies to a node.
    pub(super) fn set_reachable(&mut self, node: usize, is_reachable: bool, now: u64) {
        let since = &mut self.nodes[node].reachable_since;
        *since = if is_reachable { since.or(Some(now)) } else { None };
    }

    /// A paused node resumed.
    pub(super) fn node_woke(&mut self, node: usize) {
        self.nodes[node].breaker.spare_probes = 1;
    }

    /// A call ran in the store.
    pub(super) fn call_ran(
        &mut self,
        task: Option<TaskId>,
        request: &Request,
        answers: Option<Vec<Answer>>,
        times: Times,
    ) {
        self.note_aged_debit(request, times.now);
        self.note_refund(request, DecidedBy::Store, times.now);
        let scenario = Arc::clone(&self.scenario);
        let expected = self.store.run(&scenario.specs, request, times.store_now);
        if let Some(answers) = answers.as_ref().filter(|_| !request.costs.is_empty()) {
            self.require(times.now, *answers == expected, || {
                format!("the store answered {answers:?} to {request:?}, the oracle {expected:?}")
            });
        }
        if let Some(task) = task {
            self.replies.insert(task, StoreReply { answers, at: times.now });
        }
    }

    /// Records where a refund was credited.
    fn note_refund(&mut self, request: &Request, by: DecidedBy, at: u64) {
        if request.action == Action::Refund {
            for cost in &request.costs {
                self.refunds[cost.key].push(Admission { at, cost: cost.cost, by });
            }
        }
    }

    fn note_aged_debit(&mut self, request: &Request, now: u64) {
        if matches!(request.action, Action::Debit { age_us: 1.. }) {
            self.aged_debits.push(now);
        }
    }
}

/// The same moment on two clocks, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) now: u64,
    pub(super) store_now: u64,
}

/// The end of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    pub(super) task: TaskId,
    pub(super) result: CallResult,
    /// Number of changes of the node's breaker when the call began.
    pub(super) breaker_changes: u64,
}

/// The result of a call, as the node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallResult {
    Reply,
    /// No reply, and the call did not run.
    NotRun,
    /// No reply, and the call may have run.
    MayHaveRun,
}

impl Outcome {
    /// Returns true if the node got a reply.
    fn is_ok(self) -> bool {
        self.result == CallResult::Reply
    }
}
