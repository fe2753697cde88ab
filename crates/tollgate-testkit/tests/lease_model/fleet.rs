//! The state of a fleet: the store with its replica, the nodes, and the admissions that still count.

use tollgate::algorithm::{Op, Reply};
use tollgate::lease::spendable_for;

use crate::bound::Bound;
use crate::defect::Defect;
use crate::node::{Activity, Age, Call, Clocks, Grant, Lease, Node};
use crate::numbers::{MAX_NODES, Numbers, small};
use crate::store::StoredKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fleet {
    pub(crate) store: StoredKey,
    pub(crate) lag: Option<Lag>,
    pub(crate) bound: Bound,
    pub(crate) nodes: [Node; MAX_NODES],
    /// A request that its node has given up is still on its way.
    pub(crate) is_request_abandoned: bool,
    /// Pauses, suspensions and clock steps that can still happen.
    pub(crate) disturbances: u8,
    pub(crate) failovers: u8,
}

/// A replica that receives no writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Lag {
    replica: StoredKey,
    /// Amount that the primary granted since then, at most the limit.
    lost: u8,
}

/// A fleet with its numbers and its broken rule.
pub(crate) struct Step<'a> {
    pub(crate) numbers: &'a Numbers,
    pub(crate) defect: Option<Defect>,
    pub(crate) fleet: Fleet,
}

impl Fleet {
    pub(crate) fn new(numbers: &Numbers) -> Self {
        Self {
            store: StoredKey::default(),
            lag: None,
            bound: Bound::new(numbers),
            nodes: [Node::default(); MAX_NODES],
            is_request_abandoned: false,
            disturbances: numbers.disturbances,
            failovers: numbers.failovers,
        }
    }

    /// Makes equal fleets have equal states: the nodes are interchangeable.
    pub(crate) fn sort_nodes(&mut self, numbers: &Numbers) {
        self.nodes[..numbers.nodes].sort_unstable();
    }

    /// Returns whether a window is open; always for limits without windows.
    fn is_open(&self, numbers: &Numbers) -> bool {
        numbers.limit.algorithm() != tollgate::Algorithm::FixedWindow || self.store.is_used()
    }
}

impl Step<'_> {
    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(crate) fn tick(&mut self) {
        self.fleet.store.tick(self.numbers);
        if let Some(lag) = &mut self.fleet.lag {
            lag.replica.tick(self.numbers);
        }
        let (is_ended, hold) = (!self.has(Defect::KeptPastEnd), self.numbers.hold);
        for node in &mut self.fleet.nodes {
            let unspent = node.tick(hold, is_ended);
            if self.defect == Some(Defect::UnspentReturnedTwice) && unspent > 0 {
                let cost = 2 * u64::from(unspent);
                let _: Option<Reply> = self.fleet.store.apply(self.numbers, Op::Refund { cost });
            }
        }
        let is_open = self.fleet.is_open(self.numbers);
        self.fleet.bound.tick(self.numbers, is_open);
    }

    /// Counts an amount that the store debited.
    fn debited(&mut self, amount: u64) {
        let capacity = small(self.numbers.limit.capacity());
        if let Some(lag) = &mut self.fleet.lag {
            lag.lost = capacity.min(lag.lost + small(amount));
        }
    }

    fn admit(&mut self) {
        let is_open = self.fleet.is_open(self.numbers);
        self.fleet.bound.admit(self.numbers, is_open);
    }

    /// The store decides a request. `None` if it refuses.
    pub(crate) fn take(&mut self, is_reply_lost: bool) -> Option<()> {
        let _: Reply = self.fleet.store.apply(self.numbers, Op::Take { cost: 1 })?;
        self.debited(1);
        if !is_reply_lost {
            self.admit();
        }
        Some(())
    }

    pub(crate) fn request(&mut self, node: usize) {
        let call = Call { age: Age::default(), is_revoked: false, reply: None };
        self.fleet.nodes[node].call = Some(call);
    }

    /// The store debits a lease, by the step function of the product. `None` if it refuses.
    pub(crate) fn lease(&mut self, amount: u8) -> Option<Reply> {
        let (amount, hold) = (u64::from(amount), self.numbers.hold());
        let op = match self.defect {
            Some(Defect::PlainDebit) => Op::Take { cost: amount },
            _ => Op::Lease { amount, hold },
        };
        let reply = self.fleet.store.apply(self.numbers, op)?;
        self.debited(amount);
        Some(reply)
    }

    /// The store grants the request of a node, which includes the cost. `None` if it refuses.
    pub(crate) fn grant(&mut self, node: usize, amount: u8, cost: u8) -> Option<()> {
        let reply = self.lease(amount)?;
        (0..cost).for_each(|_| self.admit());
        let limit = match self.has(Defect::KeptPastWindow) {
            true => None,
            false => Some((&self.numbers.limit, reply.reset_after())),
        };
        let length = spendable_for(self.numbers.hold(), limit);
        let grant = Grant::new(amount - cost, length);
        self.fleet.nodes[node].call.as_mut()?.reply = Some(grant);
        Some(())
    }

    /// The reply reaches the node. `None` if there is none.
    pub(crate) fn deliver(&mut self, node: usize) -> Option<()> {
        let node = &mut self.fleet.nodes[node];
        let call = node.call.take()?;
        let grant = call.reply?;
        let age = match self.defect {
            Some(Defect::HoldFromReply) => Age::default(),
            _ => call.age,
        };
        let is_over =
            !age.can_be_within(grant.length()) && self.defect != Some(Defect::KeptPastEnd);
        if !call.is_revoked && !is_over {
            node.add(Lease { grant, age });
        }
        node.normalize();
        Some(())
    }

    /// The node waits for its request no longer, and the request may still run.
    pub(crate) fn give_up(&mut self, node: usize) {
        let node = &mut self.fleet.nodes[node];
        let is_unanswered = node.call.take().is_some_and(|call| call.reply.is_none());
        self.fleet.is_request_abandoned |= is_unanswered;
        node.normalize();
    }

    /// The node admits a request from a lease. `None` if it has ended.
    pub(crate) fn spend(&mut self, node: usize, lease: usize) -> Option<()> {
        let clocks = match self.has(Defect::MonotonicClockOnly) {
            true => Clocks::Monotonic,
            false => Clocks::Both,
        };
        let is_ended = !self.has(Defect::KeptPastEnd);
        let node = &mut self.fleet.nodes[node];
        let spent = node.leases[lease].as_mut()?;
        if is_ended && !spent.age.is_within(spent.grant.length(), clocks) {
            return None;
        }
        // A node may spend what a reset has erased until it receives the event.
        let is_counted = !(spent.grant.is_erased && node.is_reset_missed);
        spent.grant.left -= 1;
        if spent.grant.left == 0 {
            node.leases[lease] = None;
        }
        node.normalize();
        if is_counted {
            self.admit();
        }
        Some(())
    }

    /// The node receives an event that ends its leases, also one that it has requested.
    pub(crate) fn revoke(&mut self, node: usize) {
        let is_kept = self.has(Defect::EventsIgnored);
        let is_read_at_reply = self.has(Defect::EventsFromReply);
        let node = &mut self.fleet.nodes[node];
        node.is_reset_missed = false;
        if is_kept {
            return;
        }
        node.leases = Default::default();
        if let Some(call) = &mut node.call {
            call.is_revoked |= !is_read_at_reply;
        }
        node.normalize();
    }

    pub(crate) fn reset(&mut self) {
        self.fleet.store = StoredKey::default();
        self.fleet.bound.reset(self.numbers);
        if let Some(lag) = &mut self.fleet.lag {
            lag.lost = 0;
        }
        for node in &mut self.fleet.nodes {
            node.is_reset_missed = true;
            node.grants().for_each(|grant| grant.is_erased = true);
            node.normalize();
        }
    }

    pub(crate) fn crash(&mut self, node: usize) {
        self.give_up(node);
        self.fleet.nodes[node] = Node::default();
    }

    pub(crate) fn stop(&mut self, node: usize, activity: Activity) -> Option<()> {
        let stopped = &mut self.fleet.nodes[node];
        if activity == Activity::Suspended && stopped.is_time_hidden_by_suspension() {
            return None;
        }
        stopped.activity = activity;
        self.fleet.disturbances -= 1;
        Some(())
    }

    pub(crate) fn step_clock(&mut self, node: usize, by: i8) -> Option<()> {
        let stepped = &mut self.fleet.nodes[node];
        if stepped.is_time_hidden_by_step(by) {
            return None;
        }
        stepped.step_clock(by);
        self.fleet.disturbances -= 1;
        Some(())
    }

    pub(crate) fn begin_lag(&mut self) {
        self.fleet.lag = Some(Lag { replica: self.fleet.store, lost: 0 });
    }

    /// The replica becomes the primary. `None` if it does not lag.
    pub(crate) fn fail_over(&mut self) -> Option<()> {
        let lag = self.fleet.lag.take()?;
        self.fleet.store = lag.replica;
        self.fleet.failovers -= 1;
        let lost = if self.has(Defect::FailoverIsFree) { 0 } else { lag.lost };
        let is_open = self.fleet.is_open(self.numbers);
        self.fleet.bound.fail_over(lost, is_open);
        Some(())
    }
}
