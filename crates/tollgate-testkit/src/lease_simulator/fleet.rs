//! The nodes, the store between them, and the events in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tollgate::lease::{LeaseOutcome, LeaseReply, LeaseRequest};
use tollgate::{Limit, ManualClock, MemoryStore, Plan, Subject, Take, Timestamp};

use super::LeaseFigures;
use super::faults::Fault;
use super::key::Key;
use super::node::Node;
use crate::random::Random;

/// Maximum time from a call to its reply, in microseconds.
const MAX_LATENCY: u64 = 4_000;

#[derive(Debug)]
pub(super) enum Event {
    Arrival {
        node: usize,
        cost: u64,
    },
    /// A call reaches the store.
    Run(Call),
    /// A reply reaches a node.
    Reply(Call, Option<LeaseReply>),
    Fault(Fault),
}

/// A call to the store: a take, or a request for a lease.
#[derive(Debug)]
pub(super) struct Call {
    node: usize,
    process: u64,
    version: usize,
    cost: u64,
    request: Option<LeaseRequest>,
}

#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) random: Random,
    pub(super) now: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) keys: Vec<Key>,
    pub(super) subject: Subject,
    pub(super) figures: LeaseFigures,
    /// One in this many calls or replies is lost; 0: none.
    pub(super) loss: u64,
    /// Number of current outages.
    pub(super) lost_stores: u64,
    /// Admitted costs.
    pub(super) admitted: u64,
    pub(super) calls: u64,
    clock: ManualClock,
    store: MemoryStore<ManualClock>,
    due: BinaryHeap<Reverse<(u64, usize)>>,
    events: Vec<Option<Event>>,
}

impl Fleet {
    pub(super) fn new(random: Random, keys: Vec<Key>, nodes: u64) -> Self {
        let start = 1_794_765_516_667_233;
        let clock = ManualClock::at(Timestamp::from_micros(start));
        Self {
            random,
            now: start,
            nodes: (0..nodes).map(|_| Node::new()).collect(),
            keys,
            subject: Subject::of(["hot"]),
            figures: LeaseFigures::default(),
            loss: 0,
            lost_stores: 0,
            admitted: 0,
            calls: 0,
            store: MemoryStore::builder().max_keys(64).clock(clock.clone()).build(),
            clock,
            due: BinaryHeap::new(),
            events: Vec::new(),
        }
    }

    pub(super) fn plan(&mut self, at: u64, event: Event) {
        self.due.push(Reverse((at, self.events.len())));
        self.events.push(Some(event));
    }

    /// Runs all events.
    pub(super) fn run(&mut self) -> Result<(), String> {
        self.run_until(u64::MAX)
    }

    /// Runs the events before `end`.
    pub(super) fn run_until(&mut self, end: u64) -> Result<(), String> {
        while let Some(Reverse((at, number))) = self.due.peek().copied()
            && at < end
        {
            self.due.pop();
            self.now = self.now.max(at);
            self.clock.set(Timestamp::from_micros(self.now));
            if let Some(event) = self.events[number].take() {
                self.handle(event)?;
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Fault(fault) => self.apply_fault(fault),
            Event::Run(call) => self.run_call(call)?,
            Event::Arrival { node, .. } | Event::Reply(Call { node, .. }, _)
                if self.nodes[node].paused_until > self.now =>
            {
                self.plan(self.nodes[node].paused_until, event);
            }
            Event::Arrival { node, cost } => self.arrive(node, cost)?,
            Event::Reply(call, reply) => self.reply(call, reply.as_ref()),
        }
        Ok(())
    }

    /// A client sends a request to a node.
    fn arrive(&mut self, number: usize, cost: u64) -> Result<(), String> {
        self.figures.arrivals += 1;
        let (limits, subject) = (self.limits(self.nodes[number].version), self.subject.clone());
        let plan = plan(&subject, &limits, cost);
        let node = &self.nodes[number];
        let at = Timestamp::from_micros(self.now);
        let request = match node.table.spend(&plan, at, node.time(self.now)) {
            LeaseOutcome::NotLeased => None,
            LeaseOutcome::Refused(_) => {
                self.figures.refused += 1;
                return Ok(());
            }
            LeaseOutcome::Decided(_, request) => {
                self.figures.leased_decisions += 1;
                if node.missed_resets.is_empty() {
                    self.admit(cost)?;
                }
                if request.is_none() {
                    return Ok(());
                }
                request
            }
            LeaseOutcome::Request(request) => Some(request),
        };
        let node = &self.nodes[number];
        let call =
            Call { node: number, process: node.process, version: node.version, cost, request };
        self.send(call);
        Ok(())
    }

    fn send(&mut self, call: Call) {
        self.calls += 1;
        let is_lost = self.loss > 0 && self.random.one_in(self.loss);
        if is_lost || self.lost_stores > 0 {
            return;
        }
        let latency = self.random.within(100, MAX_LATENCY / 2);
        self.plan(self.now + latency, Event::Run(call));
    }

    fn run_call(&mut self, call: Call) -> Result<(), String> {
        let (limits, subject) = (self.limits(call.version), self.subject.clone());
        let plan = plan(&subject, &limits, call.cost);
        let wanted = call.request.as_ref().map(LeaseRequest::wanted);
        let reply = wanted.and_then(|wanted| self.store.lease(&plan, wanted));
        let (is_allowed, cost) = match (&reply, wanted) {
            (Some(reply), Some(wanted)) => {
                let is_allowed = reply.takes().iter().all(|take| take.reply.is_allowed());
                (is_allowed, wanted.costs()[0])
            }
            _ => (self.store.take(&plan).is_allowed(), call.cost),
        };
        let is_granted = reply.as_ref().is_some_and(LeaseReply::is_granted);
        self.figures.grants += u64::from(is_granted);
        if is_allowed && (cost > 0 || is_granted) {
            let now = self.now;
            let bounds = self.keys.iter_mut().filter_map(|key| key.bound.as_mut());
            bounds.for_each(|bound| bound.debited(now));
        }
        if cost > 0 {
            self.figures.store_decisions += 1;
            self.figures.refused += u64::from(!is_allowed);
        }
        if is_allowed && cost > 0 {
            self.admit(cost)?;
        }
        let is_lost = self.loss > 0 && self.random.one_in(self.loss);
        if is_lost {
            self.figures.lost_grants += u64::from(is_granted);
            return Ok(());
        }
        let latency = self.random.within(100, MAX_LATENCY / 2);
        self.plan(self.now + latency, Event::Reply(call, reply));
        Ok(())
    }

    fn reply(&self, call: Call, reply: Option<&LeaseReply>) {
        // The request of a crashed process is dropped.
        if let Some(request) = call.request
            && self.nodes[call.node].process == call.process
        {
            request.finish(reply);
        }
    }

    /// Counts an admission.
    fn admit(&mut self, cost: u64) -> Result<(), String> {
        self.admitted += cost;
        for key in &mut self.keys {
            if let Some(bound) = &mut key.bound {
                let limit = &key.versions;
                bound.admit(self.now, cost).map_err(|reason| format!("{reason} of {limit:?}"))?;
            }
        }
        Ok(())
    }

    fn limits(&self, version: usize) -> Vec<Arc<Limit>> {
        self.keys.iter().map(|key| Arc::clone(&key.versions[version])).collect()
    }

    pub(super) fn reset_store(&mut self) {
        for limit in self.limits(0).iter().chain(&self.limits(1)) {
            self.store.reset(&tollgate::Key::new(&self.subject, limit));
        }
        self.keys.iter_mut().for_each(Key::reset);
    }

    /// Adds what the leases of a node did not spend to the figures.
    pub(super) fn count_drops(&mut self, node: usize) {
        let node = &self.nodes[node];
        self.figures.dropped += node.table.stats(node.time(self.now)).dropped;
    }

    pub(super) fn figures(&mut self) -> LeaseFigures {
        (0..self.nodes.len()).for_each(|node| self.count_drops(node));
        self.figures
    }

    /// Time of a lease, in microseconds.
    pub(super) fn hold(&self) -> u64 {
        let holds = self.keys.iter().filter_map(|key| key.versions[0].lease_hold());
        holds.min().map_or(0, |hold| u64::try_from(hold.as_micros()).unwrap_or(0))
    }

    /// The longest window of the limits, in microseconds.
    pub(super) fn window(&self) -> u64 {
        let windows = self.keys.iter().map(|key| key.versions[0].window());
        windows.max().map_or(0, |window| u64::try_from(window.as_micros()).unwrap_or(0))
    }

    /// Maximum number of requests that the limits allow at one time.
    pub(super) fn capacity(&self) -> u64 {
        self.keys.iter().map(|key| key.versions[0].capacity()).min().unwrap_or(0)
    }

    /// Returns the index of a node.
    pub(super) fn node(&self, number: u64) -> usize {
        usize::try_from(number).unwrap_or(0) % self.nodes.len()
    }
}

fn plan<'a>(subject: &'a Subject, limits: &'a [Arc<Limit>], cost: u64) -> Plan<'a> {
    let take = |limit: &'a Arc<Limit>| Take::new(tollgate::Key::new(subject, limit), cost);
    Plan::new(limits.iter().map(take)).expect("limits differ")
}
