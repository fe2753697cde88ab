//! The network: calls of nodes on their way to the servers of the store and back, and all events in order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tollgate::StoreErrorKind;

use super::lane::Lane;
use super::request::{Answer, Request, Waiter};
use super::scenario::{Scenario, StoreModel};
use super::tickets::Tickets;
use crate::random::Random;

/// Something that happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A call reaches its server.
    Arrives(usize),
    /// A server has processed a call.
    Processed(usize),
    /// A reply reaches the node.
    Replied(usize),
    /// The node stops waiting for the call with this number.
    Expires(usize, u64),
    /// The node learns that the connection was refused, or lost with the call.
    Fails(usize),
    /// The fault with this number.
    Fault(usize),
    /// A node reports, and probes a lost store.
    Tick(usize),
    /// A node has subscribed to change events again.
    Subscribed(usize),
}

/// A call of a node to a server.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) node: usize,
    server: usize,
    /// The process that sent the call. Later processes of the node ignore the reply.
    pub(super) process: u64,
    pub(super) requests: Vec<Request>,
    pub(super) answers: Vec<Answer>,
    /// Empty once the node has stopped waiting.
    waiters: Vec<Waiter>,
    number: u64,
    /// Time of its first request. Its time limit begins then.
    begun: u64,
    /// Number of losses of the store when the server received the call.
    losses: u64,
    state: CallState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    /// With the server, or on the way.
    Sent,
    /// With the server, and the node has stopped waiting.
    Expired,
    /// Not with the server: the node learns it by its time limit.
    Vanished,
}

/// Waiters of a call that has ended, and their answers.
pub(super) type Ended = (usize, u64, Vec<(Waiter, Answer)>);

#[derive(Debug)]
pub(super) struct Network {
    due: BinaryHeap<Reverse<(u64, u64, Event)>>,
    events: u64,
    calls: Vec<Option<Call>>,
    free: Vec<usize>,
    lanes: Vec<Lane>,
    processes: Vec<u64>,
    store: StoreModel,
    /// Time at which each server has processed all its calls, in nanoseconds.
    busy_until: Vec<u64>,
    /// CPU time of all servers, in nanoseconds.
    pub(super) busy: u64,
    pub(super) is_store_lost: bool,
    losses: u64,
    /// Nodes below this number have no link to the store.
    pub(super) partitioned: usize,
    pub(super) tickets: Tickets,
    random: Random,
    /// Number of calls that were sent.
    pub(super) calls_sent: u64,
}

impl Network {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let servers = scenario.store.servers;
        Self {
            due: BinaryHeap::new(),
            events: 0,
            calls: Vec::new(),
            free: Vec::new(),
            lanes: (0..scenario.nodes * servers).map(|_| Lane::default()).collect(),
            processes: vec![0; scenario.nodes],
            store: scenario.store,
            busy_until: vec![0; servers],
            busy: 0,
            is_store_lost: false,
            losses: 0,
            partitioned: 0,
            tickets: Tickets::default(),
            random: Random::new(scenario.seed ^ 0x006E_6574),
            calls_sent: 0,
        }
    }

    pub(super) fn schedule(&mut self, at: u64, event: Event) {
        self.events += 1;
        self.due.push(Reverse((at, self.events, event)));
    }

    /// Returns the next event, if it is due before `end`.
    pub(super) fn next(&mut self, end: u64) -> Option<(u64, Event)> {
        if self.due.peek()?.0.0 >= end {
            return None;
        }
        self.due.pop().map(|Reverse((at, _, event))| (at, event))
    }

    pub(super) fn random(&mut self, high: u64) -> u64 {
        self.random.within(0, high)
    }

    /// Sends a request, immediately or in the next call.
    pub(super) fn submit(
        &mut self,
        node: usize,
        (request, waiter): (Request, Waiter),
        at: (u64, &Scenario),
    ) {
        let server = request.server(self.store.servers);
        self.lanes[node * self.store.servers + server].push(request, waiter, at.0);
        self.send_waiting(node, server, at);
    }

    fn send_waiting(&mut self, node: usize, server: usize, (now, scenario): (u64, &Scenario)) {
        let lane = node * self.store.servers + server;
        while let Some((requests, waiters, first)) =
            self.lanes[lane].next_call(now, scenario.timeout)
        {
            self.calls_sent += 1;
            let number = self.calls_sent;
            let is_cut = node < self.partitioned;
            let index = self.store_call(Call {
                node,
                server,
                process: self.processes[node],
                requests,
                answers: Vec::new(),
                waiters,
                number,
                begun: first,
                losses: self.losses,
                state: if is_cut { CallState::Vanished } else { CallState::Sent },
            });
            if is_cut {
                self.schedule((first + scenario.timeout).max(now), Event::Expires(index, number));
            } else {
                let half = self.half_trip(scenario.latency_of(node));
                self.schedule(now + half, Event::Arrives(index));
            }
        }
    }

    /// Returns half a round trip: near the usual one, and five times as long once in a thousand.
    fn half_trip(&mut self, latency: u64) -> u64 {
        let half = latency / 2;
        let jitter = self.random.within(0, half / 4);
        if self.random.one_in(1000) { half * 5 } else { half + jitter }
    }

    fn store_call(&mut self, call: Call) -> usize {
        if let Some(index) = self.free.pop() {
            self.calls[index] = Some(call);
            return index;
        }
        self.calls.push(Some(call));
        self.calls.len() - 1
    }

    /// A call reaches its server, and waits until the server has processed those before.
    pub(super) fn arrives(&mut self, index: usize, (now, scenario): (u64, &Scenario)) {
        let (losses, store) = (self.losses, self.store);
        let Some(call) = &mut self.calls[index] else { return };
        call.losses = losses;
        let latency = scenario.latency_of(call.node);
        if self.is_store_lost {
            return self.schedule(now + latency / 2, Event::Fails(index));
        }
        let plans: u64 = call.requests.iter().map(|request| request.cost(&store)).sum();
        let (cost, server, number) = (store.call_ns + plans, call.server, call.number);
        let expires_at = call.begun + scenario.timeout;
        self.busy += cost;
        let finish = self.busy_until[server].max(now * 1000) + cost;
        self.busy_until[server] = finish;
        let processed_at = finish.div_ceil(1000);
        self.schedule(processed_at, Event::Processed(index));
        if processed_at + latency > expires_at {
            self.schedule(expires_at.max(now), Event::Expires(index, number));
        }
    }

    /// Returns the call that its server has processed, unless it was lost with the server.
    pub(super) fn processed(&mut self, index: usize) -> Option<&mut Call> {
        let losses = self.losses;
        self.calls[index].as_mut().filter(|call| call.losses == losses)
    }

    /// Sends the reply of a processed or lost call.
    pub(super) fn reply(&mut self, index: usize, (now, scenario): (u64, &Scenario)) {
        let (losses, partitioned) = (self.losses, self.partitioned);
        let Some(call) = &mut self.calls[index] else { return };
        if call.state == CallState::Expired {
            self.end(index);
        } else if call.losses != losses {
            self.schedule(now, Event::Fails(index));
        } else if call.node < partitioned {
            call.state = CallState::Vanished;
            let (number, expires_at) = (call.number, call.begun + scenario.timeout);
            self.schedule(expires_at.max(now), Event::Expires(index, number));
        } else {
            let latency = scenario.latency_of(call.node);
            let half = self.half_trip(latency);
            self.schedule(now + half, Event::Replied(index));
        }
    }

    /// The node stops waiting for a call.
    pub(super) fn expire(&mut self, index: usize, of: u64, at: (u64, &Scenario)) -> Option<Ended> {
        let call = self.calls[index].as_mut().filter(|call| call.number == of)?;
        match call.state {
            CallState::Expired => None,
            CallState::Vanished => self.fail(index, StoreErrorKind::Timeout, at),
            CallState::Sent => {
                call.state = CallState::Expired;
                let waiters = std::mem::take(&mut call.waiters);
                let (node, server, process) = (call.node, call.server, call.process);
                self.call_ended((node, server, process), waiters.len(), at);
                let failed = |waiter| (waiter, Answer::Failed(StoreErrorKind::Timeout));
                Some((node, process, waiters.into_iter().map(failed).collect()))
            }
        }
    }

    /// A call ends at its node with an error.
    pub(super) fn fail(
        &mut self,
        index: usize,
        kind: StoreErrorKind,
        at: (u64, &Scenario),
    ) -> Option<Ended> {
        let call = self.calls[index].as_mut()?;
        call.answers = vec![Answer::Failed(kind); call.waiters.len()];
        self.replied(index, at)
    }

    /// A reply reaches its node.
    pub(super) fn replied(&mut self, index: usize, at: (u64, &Scenario)) -> Option<Ended> {
        let call = self.end(index)?;
        if call.state == CallState::Expired {
            return None;
        }
        self.call_ended((call.node, call.server, call.process), call.waiters.len(), at);
        Some((call.node, call.process, call.waiters.into_iter().zip(call.answers).collect()))
    }

    fn end(&mut self, index: usize) -> Option<Call> {
        self.free.push(index);
        self.calls[index].take()
    }

    /// Frees the place of a call in its lane, and sends the plans that waited for it.
    fn call_ended(
        &mut self,
        (node, server, process): (usize, usize, u64),
        plans: usize,
        at: (u64, &Scenario),
    ) {
        if self.processes[node] == process {
            self.lanes[node * self.store.servers + server].call_ended(plans);
            self.send_waiting(node, server, at);
        }
    }

    /// The servers stop replying, and lose the calls that wait.
    pub(super) fn lose_store(&mut self) {
        self.is_store_lost = true;
        self.losses += 1;
        self.busy_until.fill(0);
    }

    /// A new process replaces that of a node.
    pub(super) fn restart(&mut self, node: usize, process: u64) {
        let servers = self.store.servers;
        self.processes[node] = process;
        self.lanes[node * servers..(node + 1) * servers].fill_with(Lane::default);
    }
}
