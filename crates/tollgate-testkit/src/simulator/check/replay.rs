//! Checks the replay of a node's outage ledger: every admission that still counts once, and nothing else.

use std::sync::Arc;

use super::expected_ledger::{KeyLedger, Replay};
use super::replaying_key::ReplayingKey;
use super::{CallResult, Check, Outcome};
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
        let sent = to_replay(request);
        let is_in_batch = |other: &ReplayingKey| other.is_in_batch(task, now);
        let is_known = model.replaying.get(&cost.key).is_some_and(|known| !known.is_done());
        if !is_known && !model.replaying.values().all(is_in_batch) {
            model.settle_replays();
        }
        let ledger = &mut model.ledgers[cost.key];
        let replaying = model.replaying.entry(cost.key).or_insert_with(|| {
            let ledger = std::mem::replace(ledger, KeyLedger::new(spec));
            ReplayingKey::new(task, spec, ledger, now)
        });
        let expected = replaying.send();
        self.figures.replays += 1;
        self.require(now, sent.is_some() && sent == expected, || {
            format!("node {node} replayed {request:?}, expected {expected:?}")
        });
    }

    /// A replay ended. After a failure the rest of the key is replayed all the same.
    pub(super) fn replay_ended(
        &mut self,
        node: usize,
        request: &Request,
        outcome: Outcome,
        now: u64,
    ) {
        let model = &mut self.nodes[node];
        model.has_replay_reply |= outcome.is_ok();
        model.is_maintain_disturbed |= !outcome.is_ok();
        for cost in &request.costs {
            if let Some(replaying) = model.replaying.get_mut(&cost.key) {
                replaying.end(to_replay(request), outcome.result, now);
            }
        }
        self.figures.kept_replays += u64::from(outcome.result == CallResult::NotRun);
        self.figures.dropped_replays += u64::from(outcome.result == CallResult::MayHaveRun);
    }

    /// A caller dropped its request, and with it the replays of that task that are in flight.
    pub(in crate::simulator) fn caller_gave_up(&mut self, node: usize, task: TaskId, now: u64) {
        self.log(now, || format!("the caller of task {task} at node {node} gave up"));
        let model = &mut self.nodes[node];
        if model.replaying.values().any(|replaying| replaying.task == task) {
            let in_flight = model.replaying.values().map(|replaying| replaying.in_flight);
            self.figures.dropped_replays += in_flight.sum::<usize>() as u64;
            // A batch that has ended is settled already.
            model.settle_replays();
            model.end_replays(now);
        }
        self.roles.remove(&task);
        self.replies.remove(&task);
        self.uncertain_refunds.remove(&task);
    }

    /// Fails if a node has admissions to replay.
    pub(super) fn require_empty_ledger(&mut self, node: usize, now: u64) {
        self.nodes[node].settle_replays();
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

/// Converts a call to the replay that it sends.
fn to_replay(request: &Request) -> Option<Replay> {
    let [cost] = request.costs.as_slice() else { return None };
    match (request.action, request.permit) {
        (Action::Debit { age_us }, None) => Some(Replay::Debit { cost: cost.cost, age: age_us }),
        (Action::Take, Some(permit)) => Some(Replay::Hold { cost: cost.cost, permit }),
        _ => None,
    }
}
