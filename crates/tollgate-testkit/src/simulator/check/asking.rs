//! Whether a node asks the store: as often as it may, as soon as it must, and not before it has told all.

use super::mirror::Attends;
use super::{Asks, Check, Holds, Outcome, Role};
use crate::simulator::clockwork::TaskId;
use crate::simulator::network::Purpose;
use crate::simulator::request::{Act, Request};
use crate::simulator::setting::{Attendance, OPEN_FOR, SECOND};

/// Within so long of a store's return its nodes ask it again.
const BACK_WITHIN: u64 = 2 * SECOND;

/// Nodes look after their store no more often than this.
const SHORTEST_REST: u64 = 900_000;

impl Check {
    pub(in crate::simulator) fn breaker_changes(&self, node: usize) -> u64 {
        self.mirrors[node].breaker.changes
    }

    /// A node asks the store.
    pub(in crate::simulator) fn asks(
        &mut self,
        node: usize,
        task: TaskId,
        request: &Request,
        now: u64,
    ) -> Purpose {
        let purpose = self.purpose(task, request);
        let mirror = &mut self.mirrors[node];
        match purpose {
            Purpose::Operation => {
                let holds = Holds::from(mirror.breaker.is_closed);
                self.hold(now, holds, || format!("node {node} asked the lost store {request:?}"));
            }
            Purpose::Probe => {
                let rest = match self.setting.attendance {
                    Attendance::EachSecond => SHORTEST_REST,
                    Attendance::ByRequests => OPEN_FOR,
                };
                let (last, spare) =
                    (mirror.breaker.probed_at.replace(now), mirror.breaker.spare_probes);
                self.figures.probes += 1;
                let is_rested = last.is_none_or(|last| last + rest <= now);
                mirror.breaker.spare_probes -= u32::from(!is_rested && spare > 0);
                let holds = Holds::from(is_rested || spare > 0);
                self.hold(now, holds, || format!("node {node} probed at {last:?} and again"));
            }
            Purpose::Tell => self.tells(node, task, request, now),
        }
        purpose
    }

    /// Who asks tells what for. A node tells within the call of whoever comes when nobody looks after the store.
    fn purpose(&self, task: TaskId, request: &Request) -> Purpose {
        let is_debit = |act: Act| matches!(act, Act::Debit { .. });
        match self.roles.get(&task) {
            _ if request.wants.is_empty() => Purpose::Probe,
            Some(Role::Calls { act, permit })
                if (is_debit(*act) || !is_debit(request.act))
                    && (request.permit.is_none() || request.permit == *permit) =>
            {
                Purpose::Operation
            }
            _ => Purpose::Tell,
        }
    }

    /// A node has its answer, or none.
    pub(in crate::simulator) fn answered(
        &mut self,
        node: usize,
        request: &Request,
        purpose: Purpose,
        outcome: Outcome,
        now: u64,
    ) {
        let threshold = self.setting.threshold;
        let breaker = &mut self.mirrors[node].breaker;
        match purpose {
            Purpose::Probe if outcome.is_heard => breaker.probe_answered_at = Some(now),
            Purpose::Probe => {}
            Purpose::Tell => self.told(node, request, outcome),
            Purpose::Operation if outcome.is_heard => breaker.failures = 0,
            Purpose::Operation => {
                if breaker.changes == outcome.changes_then {
                    breaker.failures += 1;
                    if breaker.failures >= threshold && breaker.is_closed {
                        (breaker.is_closed, breaker.changes) = (false, breaker.changes + 1);
                    }
                }
                self.heard.remove(&outcome.task);
            }
        }
        self.note(now, || {
            let heard = if outcome.is_heard { "heard" } else { "did not hear" };
            format!("node {node} {heard} of {purpose:?} {request:?}")
        });
    }

    /// A node says that it asks the store again.
    pub(in crate::simulator) fn restored(&mut self, node: usize, now: u64) {
        self.note(now, || format!("node {node} restored"));
        self.figures.restored += 1;
        let breaker = &mut self.mirrors[node].breaker;
        let holds = Holds::from(!breaker.is_closed && breaker.probe_answered_at.is_some());
        let took = breaker.probe_answered_at.take().map_or(0, |at| now - at);
        (breaker.is_closed, breaker.failures) = (true, 0);
        breaker.changes += 1;
        self.hold(now, holds, || format!("node {node} was back without a probe"));
        if took < SECOND {
            self.owes_nothing(node, now);
        }
    }

    /// A node says that it is alone.
    pub(in crate::simulator) fn lost(&mut self, node: usize, now: u64) {
        self.note(now, || format!("node {node} lost the store"));
        self.figures.lost += 1;
        let holds = Holds::from(!self.mirrors[node].breaker.is_closed);
        self.hold(now, holds, || format!("node {node} gave the store up too soon"));
    }

    /// Somebody has done something on a node, which now asks the store or not.
    pub(in crate::simulator) fn is_asking(&mut self, node: usize, asks: Asks, now: u64) {
        let mirror = &self.mirrors[node];
        let holds = Holds::from(mirror.breaker.is_closed == (asks == Asks::Yes));
        let is_back = mirror.breaker.is_closed
            || self.setting.attendance == Attendance::ByRequests
            || mirror.well_since.is_none_or(|since| now <= since + BACK_WITHIN);
        let well_since = mirror.well_since;
        self.hold(now, holds, || format!("node {node} should not be {asks:?} with asking"));
        self.hold(now, Holds::from(is_back), || {
            format!("the store answers node {node} since {well_since:?} and it does not ask")
        });
    }

    pub(in crate::simulator) fn attend_begins(&mut self, node: usize) {
        self.mirrors[node].attends = Attends::Calmly;
    }

    /// A node has looked after the store: if that answered all the time, it owes nothing.
    pub(in crate::simulator) fn attended(&mut self, node: usize, now: u64) {
        let mirror = &self.mirrors[node];
        if mirror.breaker.is_closed && mirror.attends == Attends::Calmly {
            self.owes_nothing(node, now);
        }
    }
}
