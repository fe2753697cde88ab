//! Model of one node: its local store, its outage ledger, and its breaker.

use std::collections::HashMap;

use tollgate::OnStoreLoss;

use super::expected_ledger::KeyLedger;
use super::replaying_key::ReplayingKey;
use crate::answer::{Answer, VerdictKind};
use crate::simulator::request::{Action, KeyCost, Oracles, Request};
use crate::simulator::scenario::{SECOND, Scenario, share};
use crate::spec::{Kind, LimitSpec};

/// Expected state of a node, decided by oracles.
#[derive(Debug)]
pub(super) struct NodeModel {
    /// Counts shares of limits in the store, and full limits outside it.
    local: Oracles,
    local_specs: Vec<LimitSpec>,
    pub(super) ledgers: Vec<KeyLedger>,
    /// Whether the ledgers may have anything to replay.
    pub(super) has_admitted: bool,
    /// The batch of keys that a task replays.
    pub(super) replaying: HashMap<usize, ReplayingKey>,
    /// Whether the store replied to a replay since the last probe.
    pub(super) has_replay_reply: bool,
    pub(super) breaker: BreakerModel,
    /// Number of nodes that limits are divided by, since a time.
    node_counts: Vec<(u64, u32)>,
    /// Time since which the store replies to this node.
    pub(super) reachable_since: Option<u64>,
    /// Whether a call failed or an admission was recorded since the last `maintain` began.
    pub(super) is_maintain_disturbed: bool,
}

/// Expected state of a breaker.
#[derive(Debug)]
pub(super) struct BreakerModel {
    pub(super) is_closed: bool,
    pub(super) failures: u32,
    pub(super) changes: u64,
    pub(super) probed_at: Option<u64>,
    /// Number of probes that may come early: after a pause both the first request and the timer probe.
    pub(super) spare_probes: u32,
    /// Whether the last probe was sent by a recovery.
    pub(super) is_recovering: bool,
    /// Time of the first successful probe since the breaker opened, unless no call succeeded since.
    pub(super) recovering_since: Option<u64>,
}

impl NodeModel {
    pub(super) fn new(scenario: &Scenario, nodes: u32, now: u64) -> Self {
        let breaker = BreakerModel {
            is_closed: true,
            failures: 0,
            changes: 0,
            probed_at: None,
            spare_probes: 0,
            is_recovering: false,
            recovering_since: None,
        };
        let mut model = Self {
            local: Oracles::new(scenario.keys.len()),
            local_specs: Vec::new(),
            ledgers: scenario.specs.iter().map(KeyLedger::new).collect(),
            has_admitted: false,
            replaying: HashMap::new(),
            has_replay_reply: false,
            breaker,
            node_counts: Vec::new(),
            reachable_since: Some(now),
            is_maintain_disturbed: false,
        };
        model.set_nodes(scenario, nodes, now);
        model
    }

    pub(super) fn set_nodes(&mut self, scenario: &Scenario, nodes: u32, now: u64) {
        self.node_counts.push((now, nodes));
        let local_spec = |(key, spec): (usize, &LimitSpec)| match scenario.is_shared(key) {
            true => share(spec, nodes),
            false => spec.clone(),
        };
        self.local_specs = scenario.specs.iter().enumerate().map(local_spec).collect();
    }

    /// Runs a request in the local store.
    pub(super) fn run_local(&mut self, request: &Request, now: u64) -> Vec<Answer> {
        self.local.run(&self.local_specs, request, now)
    }

    /// Decides a request without the shared store, and records its admissions.
    pub(super) fn decide_degraded(
        &mut self,
        scenario: &Scenario,
        request: &Request,
        now: u64,
    ) -> Vec<Answer> {
        self.settle_replays();
        let loss = |key: usize| scenario.on_store_loss(key);
        let has = |wanted| request.costs.iter().any(|cost| loss(cost.key) == wanted);
        let action = match request.action {
            Action::Take | Action::Refund if has(OnStoreLoss::Deny) => Action::Peek,
            action => action,
        };
        let local = request.filter_keys(|key| loss(key) == OnStoreLoss::Local).with_action(action);
        let mut local_answers = self.run_local(&local, now).into_iter();
        let capacity = |cost: &KeyCost| scenario.specs[cost.key].capacity();
        let answer = |cost: &KeyCost| match loss(cost.key) {
            OnStoreLoss::Allow => allowed(capacity(cost)),
            OnStoreLoss::Deny => denied(capacity(cost)),
            _ => {
                let local_answer = local_answers.next().expect("one answer per key");
                never_to_deny(cost, capacity(cost), local_answer)
            }
        };
        let answers: Vec<Answer> = request.costs.iter().map(answer).collect();
        if action != Action::Take || answers.iter().all(Answer::is_allowed) {
            self.record(scenario, &request.clone().with_action(action), now);
        }
        answers
    }

    fn record(&mut self, scenario: &Scenario, request: &Request, now: u64) {
        (self.is_maintain_disturbed, self.has_admitted) = (true, true);
        for cost in request.costs.iter().filter(|cost| cost.cost > 0) {
            let (spec, ledger) = (&scenario.specs[cost.key], &mut self.ledgers[cost.key]);
            match request.action {
                Action::Take => {
                    let permit = request.permit.filter(|_| spec.algorithm == Kind::Concurrency);
                    ledger.admit(spec, now, 0, cost.cost, permit);
                }
                Action::Debit { age_us } => ledger.admit(spec, now, age_us, cost.cost, None),
                Action::Refund => ledger.refund(spec, now, cost.cost),
                Action::Peek | Action::Release | Action::Renew => {}
            }
        }
    }

    /// Returns to the ledgers what did not run, if the batch has ended.
    pub(super) fn settle_replays(&mut self) {
        if self.replaying.is_empty() || !self.replaying.values().all(ReplayingKey::is_done) {
            return;
        }
        if !self.has_replay_reply && self.replaying.values().any(|replaying| replaying.has_failed) {
            self.breaker.recovering_since = None;
        }
        let ended_at = self.replaying.values().map(|replaying| replaying.ended_at).max();
        self.end_replays(ended_at.unwrap_or(0));
    }

    /// Ends the batch: returns to the ledgers what did not run, also what was not sent.
    pub(super) fn end_replays(&mut self, now: u64) {
        for (key, replaying) in self.replaying.drain() {
            self.has_admitted |= replaying.restore(&mut self.ledgers[key], now);
        }
    }

    /// Releases or renews a permit. Returns true if the ledger has slots of it.
    pub(super) fn run_permit(&mut self, scenario: &Scenario, request: &Request, now: u64) -> bool {
        let permit = request.permit.unwrap_or(0);
        self.settle_replays();
        self.run_local(request, now);
        let mut is_held = false;
        for cost in &request.costs {
            let (spec, ledger) = (&scenario.specs[cost.key], &mut self.ledgers[cost.key]);
            is_held |= ledger.is_held(spec, now, permit);
            match request.action {
                Action::Release => ledger.release(permit),
                _ => ledger.renew(spec, now, permit),
            }
        }
        is_held
    }

    /// Returns the largest share of a limit at any time in `from..=to`, and the number of its changes.
    pub(super) fn largest_share(&self, spec: &LimitSpec, from: u64, to: u64) -> (LimitSpec, u64) {
        let later = self.node_counts.iter().filter(|(since, _)| *since > from && *since <= to);
        let before = self.node_counts.iter().rev().find(|(since, _)| *since <= from);
        let changes = later.clone().count() as u64;
        let fewest = later.chain(before).map(|(_, nodes)| *nodes).min().unwrap_or(u32::MAX);
        (share(spec, fewest), changes)
    }
}

/// Turns `Never` into `Deny` for a cost that exceeds the share but not the limit: it fits after the outage.
fn never_to_deny(cost: &KeyCost, capacity: u64, answer: Answer) -> Answer {
    if answer.verdict == VerdictKind::Never && cost.cost <= capacity {
        return Answer { verdict: VerdictKind::Deny, retry_after_us: Some(SECOND), ..answer };
    }
    answer
}

fn allowed(capacity: u64) -> Answer {
    Answer {
        verdict: VerdictKind::Allow,
        retry_after_us: None,
        count: 0,
        remaining: capacity,
        reset_after_us: 0,
        granted: 0,
        debt: 0,
        given_back: 0,
        uncollected: 0,
        repeated: false,
    }
}

fn denied(capacity: u64) -> Answer {
    Answer {
        verdict: VerdictKind::Deny,
        retry_after_us: Some(SECOND),
        count: capacity,
        remaining: 0,
        ..allowed(capacity)
    }
}
