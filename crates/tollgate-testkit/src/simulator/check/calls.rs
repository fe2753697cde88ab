//! Checks when a node calls the store: the breaker, probes, and recovery.

use super::{CallResult, Check, Outcome, Role};
use crate::simulator::network::Purpose;
use crate::simulator::request::{Action, Request};
use crate::simulator::scenario::{Maintenance, OPEN_FOR, SECOND};
use crate::simulator::virtual_time::TaskId;

/// Time after the return of the store within which a node calls it again, in microseconds.
const MAX_RECOVERY: u64 = 2 * SECOND;

/// Minimum time between two probes of `maintain`, in microseconds.
const MIN_PROBE_INTERVAL: u64 = 900_000;

impl Check {
    pub(in crate::simulator) fn breaker_changes(&self, node: usize) -> u64 {
        self.nodes[node].breaker.changes
    }

    /// A node sends a call to the store.
    pub(in crate::simulator) fn call_sent(
        &mut self,
        node: usize,
        task: TaskId,
        request: &Request,
        now: u64,
    ) -> Purpose {
        let purpose = self.purpose(task, request);
        let model = &mut self.nodes[node];
        if purpose == Purpose::Probe {
            model.settle_replays();
            model.has_replay_reply = false;
        }
        let breaker = &mut model.breaker;
        match purpose {
            Purpose::Operation => {
                let is_closed = breaker.is_closed;
                self.require(now, is_closed, || {
                    format!("node {node} called the lost store: {request:?}")
                });
            }
            Purpose::Probe => {
                let interval = match self.scenario.maintenance {
                    Maintenance::EverySecond => MIN_PROBE_INTERVAL,
                    Maintenance::ByRequests => OPEN_FOR,
                };
                // While the breaker is closed, a probe precedes debits and is not part of a recovery.
                breaker.is_recovering = !breaker.is_closed;
                let (last, spare) = (breaker.probed_at.replace(now), breaker.spare_probes);
                self.figures.probes += 1;
                let is_due = last.is_none_or(|last| last + interval <= now);
                breaker.spare_probes -= u32::from(!is_due && spare > 0);
                self.require(now, is_due || spare > 0, || {
                    format!("node {node} probed again too soon after {last:?}")
                });
            }
            Purpose::Replay => self.replay_sent(node, task, request, now),
        }
        purpose
    }

    /// Derives the purpose of a call from its task. Without maintenance a node replays within the call of a request.
    fn purpose(&self, task: TaskId, request: &Request) -> Purpose {
        let is_debit = |action: Action| matches!(action, Action::Debit { .. });
        match self.roles.get(&task) {
            _ if request.costs.is_empty() => Purpose::Probe,
            Some(Role::Serves { action, permit })
                if (is_debit(*action) || !is_debit(request.action))
                    && (request.permit.is_none() || request.permit == *permit) =>
            {
                Purpose::Operation
            }
            _ => Purpose::Replay,
        }
    }

    /// A call ended, with or without a reply.
    pub(in crate::simulator) fn call_ended(
        &mut self,
        node: usize,
        request: &Request,
        purpose: Purpose,
        outcome: Outcome,
        now: u64,
    ) {
        let threshold = self.scenario.threshold;
        let breaker = &mut self.nodes[node].breaker;
        match purpose {
            Purpose::Probe if !outcome.is_ok() => {
                breaker.recovering_since = None;
                self.nodes[node].is_maintain_disturbed = true;
            }
            Purpose::Probe if breaker.is_recovering => {
                breaker.recovering_since.get_or_insert(now);
            }
            Purpose::Probe => {}
            Purpose::Replay => self.replay_ended(node, request, outcome, now),
            Purpose::Operation if outcome.is_ok() => breaker.failures = 0,
            Purpose::Operation => {
                if breaker.changes == outcome.breaker_changes {
                    breaker.failures += 1;
                    if breaker.failures >= threshold && breaker.is_closed {
                        (breaker.is_closed, breaker.changes) = (false, breaker.changes + 1);
                    }
                }
                self.replies.remove(&outcome.task);
                if outcome.result == CallResult::MayHaveRun && request.action == Action::Refund {
                    self.uncertain_refunds.insert(outcome.task);
                }
            }
        }
        self.log(now, || {
            let result = outcome.result;
            format!("node {node}: {result:?} to {purpose:?} {request:?}")
        });
    }

    /// A node reported that the store is restored.
    pub(in crate::simulator) fn store_restored(&mut self, node: usize, now: u64) {
        self.log(now, || format!("node {node} restored"));
        self.figures.recoveries += 1;
        let breaker = &mut self.nodes[node].breaker;
        let is_probed = !breaker.is_closed && breaker.recovering_since.is_some();
        let replay_time = breaker.recovering_since.take().map_or(0, |at| now - at);
        (breaker.is_closed, breaker.failures) = (true, 0);
        breaker.changes += 1;
        self.require(now, is_probed, || format!("node {node} recovered without a probe"));
        if replay_time < SECOND {
            self.require_empty_ledger(node, now);
        }
    }

    /// A node reported that the store is lost.
    pub(in crate::simulator) fn store_lost(&mut self, node: usize, now: u64) {
        self.log(now, || format!("node {node} lost the store"));
        self.figures.losses += 1;
        let is_open = !self.nodes[node].breaker.is_closed;
        self.require(now, is_open, || format!("node {node} opened its breaker too soon"));
    }

    /// Checks the breaker of a node after one of its tasks ran.
    pub(in crate::simulator) fn check_breaker(&mut self, node: usize, is_closed: bool, now: u64) {
        let model = &self.nodes[node];
        let (is_expected, reachable_since) =
            (model.breaker.is_closed == is_closed, model.reachable_since);
        let is_in_time = model.breaker.is_closed
            || self.scenario.maintenance == Maintenance::ByRequests
            || reachable_since.is_none_or(|since| now <= since + MAX_RECOVERY);
        self.require(now, is_expected, || {
            format!("node {node}: unexpected breaker state: is_closed={is_closed}")
        });
        self.require(now, is_in_time, || {
            format!("node {node} does not call the store, reachable since {reachable_since:?}")
        });
    }

    pub(in crate::simulator) fn maintain_begins(&mut self, node: usize) {
        self.nodes[node].is_maintain_disturbed = false;
    }

    /// A node's `maintain` ended: if the store replied to every call, the outage ledger is empty.
    pub(in crate::simulator) fn maintain_ended(&mut self, node: usize, now: u64) {
        let model = &self.nodes[node];
        if model.breaker.is_closed && !model.is_maintain_disturbed {
            self.require_empty_ledger(node, now);
        }
    }
}
