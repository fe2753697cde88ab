//! Checks the replay of a node's outage ledger: every admission that still counts once, and nothing else.

use std::sync::Arc;

use super::expected_ledger::{KeyLedger, Replay};
use super::{Check, Outcome};
use crate::simulator::request::{Action, Request};
use crate::simulator::virtual_time::TaskId;

impl Check {
    /// A node replays one admission: it must be the next one in its ledger.
    pub(super) fn replay_sent(&mut self, node: usize, task: TaskId, request: &Request, now: u64) {
        let scenario = Arc::clone(&self.scenario);
        let [cost] = request.costs.as_slice() else {
            return self
                .fail(now, || format!("node {node} replayed several keys at once: {request:?}"));
        };
        let spec = &scenario.specs[cost.key];
        let model = &mut self.nodes[node];
        let ledger = &mut model.ledgers[cost.key];
        let (_, queue) = model.replaying.entry(cost.key).or_insert_with(|| {
            let replays = std::mem::replace(ledger, KeyLedger::new(spec)).replays(spec, now);
            (task, replays.into())
        });
        let sent = match (request.action, request.permit) {
            (Action::Debit { age_us }, None) => {
                Some(Replay::Debit { cost: cost.cost, age: age_us })
            }
            (Action::Take, Some(permit)) => Some(Replay::Hold { cost: cost.cost, permit }),
            _ => None,
        };
        let expected = queue.pop_front();
        self.figures.replays += 1;
        self.require(now, sent.is_some() && sent == expected, || {
            format!("node {node} replayed {request:?}, expected {expected:?}")
        });
    }

    /// A replay ended. After a failure the rest of the key is replayed all the same.
    pub(super) fn replay_ended(&mut self, node: usize, request: &Request, outcome: Outcome) {
        let model = &mut self.nodes[node];
        for cost in &request.costs {
            let is_last = model.replaying.get(&cost.key).is_none_or(|(_, queue)| queue.is_empty());
            if is_last {
                model.replaying.remove(&cost.key);
            }
        }
        if !outcome.is_ok {
            self.figures.dropped_replays += 1;
            model.is_maintain_disturbed = true;
        }
    }

    /// A caller dropped its request, and with it the replays of that task.
    pub(in crate::simulator) fn caller_gave_up(&mut self, node: usize, task: TaskId, now: u64) {
        self.log(now, || format!("the caller of task {task} at node {node} gave up"));
        let model = &mut self.nodes[node];
        let before = model.replaying.len();
        model.replaying.retain(|_, (replaying_task, _)| *replaying_task != task);
        self.figures.dropped_replays += (before - model.replaying.len()) as u64;
        self.roles.remove(&task);
        self.replies.remove(&task);
    }

    /// Fails if a node has admissions to replay.
    pub(super) fn require_empty_ledger(&mut self, node: usize, now: u64) {
        if !std::mem::take(&mut self.nodes[node].has_admitted) {
            return;
        }
        let scenario = Arc::clone(&self.scenario);
        for (key, spec) in scenario.specs.iter().enumerate() {
            let replays = self.nodes[node].ledgers[key].replays(spec, now);
            self.require(now, replays.is_empty(), || {
                format!("node {node} did not replay {replays:?} of key {key}")
            });
        }
    }
}
