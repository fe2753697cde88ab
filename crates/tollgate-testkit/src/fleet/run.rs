//! Runs a simulation.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate::algorithm::Reply;
use tollgate::lease::LeaseReply;
use tollgate::{
    Decision, ManualClock, MemoryStore, Source, Store, StoreErrorKind, Timestamp, Verdict,
};

use super::demand::{Arrival, Demand};
use super::figures::{Figures, LeaseFigures};
use super::network::{Ended, Event};
use super::node::Node;
use super::request::{Answer, Operation, Request, Waiter};
use super::scenario::SECOND;
use super::tally::{Decided, Tally};
use super::world::{START, World};

/// The verdict and the source of a decision; `None` if it failed.
type Outcome = Option<(bool, Source)>;

/// A request of a client, or the maintenance of a node.
pub(super) struct Task<'w> {
    request: Option<Decided>,
    pub(super) node: usize,
    future: Pin<Box<dyn Future<Output = Outcome> + 'w>>,
}

pub(super) struct Simulation<'w> {
    pub(super) world: &'w World,
    store: MemoryStore<ManualClock>,
    pub(super) nodes: Vec<Node<'w>>,
    pub(super) tasks: Vec<Option<Task<'w>>>,
    pub(super) free: Vec<usize>,
    tally: Tally,
    leases: LeaseFigures,
}

impl<'w> Simulation<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        let scenario = &world.scenario;
        let store =
            MemoryStore::builder().max_keys(scenario.keys as usize * 2).clock(world.clock.clone());
        let nodes = (0..scenario.nodes).map(|number| Node::new(world, number, 0)).collect();
        let mut network = world.network();
        for (number, (at, _)) in scenario.faults.iter().enumerate() {
            network.schedule(START + at, Event::Fault(number));
        }
        for node in 0..scenario.nodes {
            let at = START + network.random(SECOND);
            network.schedule(at, Event::Tick(node));
        }
        drop(network);
        Self {
            world,
            store: store.build(),
            nodes,
            tasks: Vec::new(),
            free: Vec::new(),
            tally: Tally::new(scenario, world.limit()),
            leases: LeaseFigures::default(),
        }
    }

    pub(super) fn run(mut self) -> Figures {
        let scenario = &self.world.scenario;
        let mut demand = Demand::new(scenario);
        let mut next = demand.draw();
        let (mut calls, mut busy) = (0, 0);
        for (end, is_measured) in [(scenario.warm_up, false), (scenario.end(), true)] {
            if is_measured {
                self.tally.begin_measurement();
                let network = self.world.network();
                (calls, busy) = (network.calls_sent, network.busy);
            }
            while next.at < end {
                self.run_events(START + next.at);
                self.arrive(next);
                next = demand.draw();
            }
            self.run_events(START + end);
        }
        let network = self.world.network();
        (calls, busy) = (network.calls_sent - calls, network.busy - busy);
        drop(network);
        self.figures(calls, busy)
    }

    fn figures(mut self, calls: u64, busy: u64) -> Figures {
        let scenario = &self.world.scenario;
        for node in 0..self.nodes.len() {
            self.count_leases(node);
        }
        let mut figures = self.tally.figures(scenario);
        figures.set_calls(calls);
        let capacity = scenario.length as f64 * 1e3 * scenario.store.servers as f64;
        figures.store.busy_part = busy as f64 / capacity;
        figures.leases = self.leases;
        figures.scenario = Some(scenario.clone());
        figures
    }

    pub(super) fn count_leases(&mut self, node: usize) {
        let stats = self.nodes[node].store.store().leases.stats(self.world.lease_time());
        self.leases.add(stats);
        self.leases.held += stats.held;
    }

    /// Runs the events before `end`, and sets the time to it.
    fn run_events(&mut self, end: u64) {
        while let Some((at, event)) = self.next_event(end) {
            self.set_time(at);
            self.handle(event);
        }
        self.set_time(end);
    }

    fn next_event(&self, end: u64) -> Option<(u64, Event)> {
        self.world.network().next(end)
    }

    fn set_time(&self, at: u64) {
        if at > self.world.now() {
            self.world.clock.set(Timestamp::from_micros(at));
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.world.now();
        match event {
            Event::Processed(call) => self.process(call),
            Event::Fault(number) => self.apply(self.world.scenario.faults[number].1),
            Event::Tick(node) => {
                self.world.network().schedule(now + SECOND, Event::Tick(node));
                self.tick(node);
            }
            Event::Subscribed(node) => self.subscribed(node),
            Event::Arrives(_) | Event::Replied(_) | Event::Expires(..) | Event::Fails(_) => {
                if let Some(ended) = self.pass_on(event) {
                    self.deliver(ended);
                }
            }
        }
    }

    /// Passes an event of a call to the network.
    fn pass_on(&self, event: Event) -> Option<Ended> {
        let at = (self.world.now(), &self.world.scenario);
        let mut network = self.world.network();
        match event {
            Event::Arrives(call) => {
                network.arrives(call, at);
                None
            }
            Event::Replied(call) => network.replied(call, at),
            Event::Expires(call, number) => network.expire(call, number, at),
            Event::Fails(call) => network.fail(call, StoreErrorKind::Lost, at),
            _ => None,
        }
    }

    fn subscribed(&self, node: usize) {
        let network = self.world.network();
        if !network.is_store_lost && node >= network.partitioned {
            self.nodes[node].store.store().subscribed();
        }
    }

    /// A client sends a request to a node.
    fn arrive(&mut self, arrival: Arrival) {
        let Arrival { key, node: number, .. } = arrival;
        let (world, now) = (self.world, self.world.now());
        self.tally.arrived(key, number, now);
        let node = &self.nodes[number];
        let (store, process) = (Arc::clone(&node.store), node.process);
        let future = Box::pin(async move {
            let plan = world.plan(key);
            let decision = store.take(&plan).await.ok()?;
            Some((decision.is_allowed(), decision.source()))
        });
        let request = Decided { key, node: number, process, begun: now, decision: None };
        self.start(Task { request: Some(request), node: number, future });
    }

    /// A node reports, and probes the store if it is lost.
    fn tick(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        node.store.store().report();
        if node.is_maintaining {
            return;
        }
        node.is_maintaining = true;
        let store = Arc::clone(&node.store);
        let future = Box::pin(async move {
            store.maintain().await;
            None
        });
        self.start(Task { request: None, node: number, future });
    }

    fn start(&mut self, mut task: Task<'w>) {
        let index = self.free.last().copied().unwrap_or(self.tasks.len());
        self.world.network().tickets.current_task = index;
        let mut context = Context::from_waker(Waker::noop());
        match task.future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => self.end_task(&task, outcome),
            Poll::Pending if self.free.pop().is_some() => self.tasks[index] = Some(task),
            Poll::Pending => self.tasks.push(Some(task)),
        }
    }

    fn poll(&mut self, index: usize) {
        let Some(task) = &mut self.tasks[index] else { return };
        self.world.network().tickets.current_task = index;
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(outcome) = task.future.as_mut().poll(&mut context) else { return };
        self.free.push(index);
        if let Some(task) = self.tasks[index].take() {
            self.end_task(&task, outcome);
        }
    }

    fn end_task(&mut self, task: &Task<'_>, decision: Outcome) {
        let Some(request) = task.request else {
            self.nodes[task.node].is_maintaining = false;
            return;
        };
        let now = self.world.now();
        if let Some((true, Source::Lease)) = decision {
            self.tally.admitted(request.key, now);
        }
        self.tally.decided(Decided { decision, ..request }, now);
    }

    /// A server runs the requests of a call.
    fn process(&mut self, index: usize) {
        let world = self.world;
        let at = (world.now(), &world.scenario);
        let mut network = world.network();
        if let Some(call) = network.processed(index) {
            for request in &call.requests {
                let answer = self.run_request(request, at.0);
                call.answers.push(answer);
            }
        }
        network.reply(index, at);
    }

    fn run_request(&mut self, request: &Request, now: u64) -> Answer {
        let key = request.key;
        let plan = self.world.plan(key);
        let at = Timestamp::from_micros(now);
        let reply = match &request.operation {
            Operation::Take => first_reply(&self.store.take(&plan)),
            Operation::Peek => first_reply(&self.store.peek(&plan)),
            Operation::Debit(age) => first_reply(&self.store.debit(&plan, *age)),
            Operation::Lease(wanted) => {
                self.tally.requested(key, now - START);
                let reply = self.store.lease(&plan, wanted).expect("a plan that can be leased");
                if wanted.costs()[0] > 0 && is_allowed(&reply) {
                    self.tally.admitted(key, now);
                }
                return Answer::Leased(reply);
            }
            Operation::Probe | Operation::Report => {
                Reply::new(Verdict::Allow, 1, std::time::Duration::ZERO)
            }
        };
        match request.operation {
            Operation::Take if reply.is_allowed() => self.tally.admitted(key, now),
            Operation::Probe | Operation::Report => return Answer::Replied(at, reply),
            _ => {}
        }
        self.tally.requested(key, now - START);
        Answer::Replied(at, reply)
    }

    /// Passes the answers of a call to those who wait for them.
    fn deliver(&mut self, (node, process, answers): Ended) {
        if self.nodes[node].process != process {
            return;
        }
        for (waiter, answer) in answers {
            match waiter {
                Waiter::Task(ticket) => {
                    let task = self.world.network().tickets.answer(ticket, answer);
                    if let Some(task) = task {
                        self.poll(task);
                    }
                }
                Waiter::Lease(lease) => match answer {
                    Answer::Leased(reply) => lease.finish(Some(&reply)),
                    _ => lease.finish(None),
                },
                Waiter::None => {}
            }
        }
    }
}

fn first_reply(decision: &Decision<'_>) -> Reply {
    let status = decision.statuses().first().expect("one take");
    Reply::new(status.verdict(), status.remaining(), status.reset_after())
}

fn is_allowed(reply: &LeaseReply) -> bool {
    reply.takes().iter().all(|take| take.reply.is_allowed())
}
