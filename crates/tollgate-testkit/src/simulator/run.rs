//! Runs one hour and the time after it until all limits are full again.

mod faults;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::check::{Role, Stage};
use super::node::{Node, State};
use super::request::{Action, KeyCost, Request};
use super::scenario::{Maintenance, SECOND, Scenario, refill, share};
use super::schedule::{self, Fault, HOUR, Silence};
use super::traffic::{self, Caller, Holding};
use super::virtual_time::{Due, TaskId};
use super::world::World;
use super::{Failure, Figures};
use crate::random::Random;
use crate::spec::LimitSpec;

/// Approximate start of the hour, in microseconds; late enough for a clock to step back.
const START: u64 = 1_794_765_516_667_233;

/// Time after the hour within which every breaker closes, also without maintenance, in microseconds.
const RECOVERY: u64 = 40 * SECOND;

#[derive(Debug, Clone)]
enum Planned {
    Fault(Fault),
    Call(Caller),
    GiveUp(TaskId),
}

struct Task {
    node: usize,
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
}

pub(super) struct Simulation {
    world: Arc<World>,
    nodes: Vec<Node>,
    planned: Vec<Planned>,
    tasks: Vec<Option<Task>>,
    start: u64,
}

impl Simulation {
    pub(super) fn new(seed: u64, timeline: Option<Vec<String>>) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed);
        let scenario = Scenario::draw(seed, &mut random);
        let faults = schedule::draw(&scenario, &mut random);
        let callers = traffic::draw(&scenario, &faults, &mut random);
        let start = START + random.within(0, HOUR);
        let nodes = scenario.nodes;
        let world = Arc::new(World::new(scenario, start, timeline));
        let (planned, tasks) = (Vec::new(), Vec::new());
        let mut simulation = Self { world, nodes: Vec::new(), planned, tasks, start };
        simulation.world.check().log(start, || format!("{:#?}", simulation.world.scenario));
        for _ in 0..nodes {
            simulation.join(nodes);
        }
        for (at, fault) in faults.into_iter().filter(|(at, _)| *at < HOUR) {
            simulation.plan(start + at, Planned::Fault(fault));
        }
        for (at, caller) in callers {
            simulation.plan(start + at, Planned::Call(caller));
        }
        simulation
    }

    pub(super) fn run_and_check(mut self) -> Result<Figures, Failure> {
        self.run();
        self.result()
    }

    pub(super) fn result(&self) -> Result<Figures, Failure> {
        let mut check = self.world.check();
        match check.take_failure() {
            Some((reason, timeline)) => {
                Err(Failure { seed: self.world.scenario.seed, reason, timeline })
            }
            None => Ok(check.figures),
        }
    }

    pub(super) fn timeline(&self) -> Vec<String> {
        self.world.check().take_timeline()
    }

    /// Runs the hour, then a time without faults until all limits are full, then one more loss of the store.
    pub(super) fn run(&mut self) {
        let end = self.start + HOUR;
        self.run_until(end);
        self.end_all_faults();
        self.run_until(end + RECOVERY - SECOND);
        // The first request of a node probes the store, the second is decided there. This also repairs state that
        // a clock step left in the future.
        self.take_everywhere(end + RECOVERY, |_, _| 0);
        self.take_everywhere(end + RECOVERY + SECOND, |_, _| 0);
        let longest = self.world.scenario.specs.iter().map(|spec| 3 * spec.window_us).max();
        let quiet = end + RECOVERY + 2 * SECOND;
        self.run_until(quiet);
        self.stop_maintenance();
        self.run_until(quiet + longest.unwrap_or(0));
        let full = quiet + longest.unwrap_or(0) + self.longest_refill();
        self.set_stage(Stage::Full, full);
        self.take_everywhere(full, |spec, _| spec.capacity());
        // Wait for the refill after the takes of every node.
        let lost = full + (self.nodes.len() as u64 + 1) * self.longest_refill();
        self.run_until(lost);
        self.apply_fault(Fault::Hang(Silence::Refuses));
        self.set_stage(Stage::FullAndLost, lost);
        self.take_everywhere(lost, |spec, nodes| share(spec, nodes).capacity());
        self.run_until(lost + SECOND);
        let now = self.world.time.now();
        self.world.check().check_bounds(now);
    }

    fn run_until(&mut self, end: u64) {
        while !self.world.check().has_failed()
            && let Some(due) = self.world.time.advance_to_next(end)
        {
            match due {
                Due::Task(task) => self.poll(task),
                Due::Planned(number) => {
                    let planned = self.planned[number].clone();
                    self.execute(planned);
                }
            }
        }
        self.world.time.advance_to(end);
    }

    fn plan(&mut self, at: u64, planned: Planned) {
        self.world.time.schedule(at, Due::Planned(self.planned.len()));
        self.planned.push(planned);
    }

    fn execute(&mut self, planned: Planned) {
        match planned {
            Planned::Fault(fault) => self.apply_fault(fault),
            Planned::Call(caller) => self.call(caller),
            Planned::GiveUp(task) => {
                if let Some(Task { node, .. }) = self.tasks[task].take() {
                    self.world.check().caller_gave_up(node, task, self.world.time.now());
                }
            }
        }
    }

    fn call(&mut self, caller: Caller) {
        let live: Vec<usize> = self
            .nodes
            .iter()
            .filter(|node| node.state != State::Gone)
            .map(|node| node.number)
            .collect();
        let Some(node) = Random::new(caller.node).pick(&live).copied() else { return };
        self.call_at(node, caller);
    }

    fn call_at(&mut self, node: usize, caller: Caller) {
        let role = Role::Serves { action: caller.request.action, permit: caller.request.permit };
        let gives_up_after = caller.gives_up_after;
        let future = self.nodes[node].serve(&self.world, caller);
        let task = self.spawn(node, role, Box::pin(future));
        if let Some(after) = gives_up_after {
            self.plan(self.world.time.now() + after, Planned::GiveUp(task));
        }
        self.poll(task);
    }

    fn spawn(
        &mut self,
        node: usize,
        role: Role,
        future: Pin<Box<dyn Future<Output = ()> + Send>>,
    ) -> TaskId {
        let task = self.tasks.len();
        self.world.check().set_role(task, role);
        self.tasks.push(Some(Task { node, future }));
        task
    }

    /// Polls a task, or queues it if its node is paused.
    fn poll(&mut self, task: TaskId) {
        let Some(Task { node, future }) = &mut self.tasks[task] else { return };
        let node = &mut self.nodes[*node];
        if node.state == State::Paused {
            node.waiting.push(task);
            return;
        }
        self.world.time.set_current_task(task);
        let mut context = Context::from_waker(Waker::noop());
        if future.as_mut().poll(&mut context).is_ready() {
            self.tasks[task] = None;
        }
        let (is_closed, now) = (node.is_breaker_closed(), self.world.time.now());
        self.world.check().check_breaker(node.number, is_closed, now);
    }

    fn join(&mut self, nodes: u32) {
        let node = Node::new(&self.world, self.nodes.len(), nodes);
        let (number, maintain) = (node.number, node.maintain(&self.world));
        self.nodes.push(node);
        if self.world.scenario.maintenance == Maintenance::EverySecond {
            let task = self.spawn(number, Role::Maintains, Box::pin(maintain));
            self.poll(task);
        }
    }

    fn live_nodes(&self) -> u32 {
        let live = self.nodes.iter().filter(|node| node.state != State::Gone).count();
        u32::try_from(live).unwrap_or(1)
    }

    fn end_all_faults(&mut self) {
        for node in 0..self.nodes.len() {
            self.apply_fault(Fault::Heal(node));
            self.apply_fault(Fault::Wake(node));
        }
        self.apply_fault(Fault::Resume);
        self.apply_fault(Fault::NormalSpeed);
    }

    fn stop_maintenance(&mut self) {
        let maintains = |task: &TaskId| self.world.check().is_maintenance(*task);
        let maintaining: Vec<TaskId> = (0..self.tasks.len()).filter(maintains).collect();
        maintaining.into_iter().for_each(|task| self.tasks[task] = None);
    }

    fn set_stage(&self, stage: Stage, now: u64) {
        let mut check = self.world.check();
        check.stage = stage;
        check.log(now, || format!("{stage:?}"));
    }

    /// Returns the longest refill time, in the store and on every node, in microseconds.
    fn longest_refill(&self) -> u64 {
        let scenario = &self.world.scenario;
        let max_nodes = u32::try_from(self.nodes.len()).unwrap_or(1);
        let refills = scenario
            .specs
            .iter()
            .flat_map(|spec| (1..=max_nodes).map(|nodes| refill(&share(spec, nodes))));
        refills.max().unwrap_or(0) + SECOND
    }

    /// Takes from every key on every node, one node after the other.
    fn take_everywhere(&mut self, from: u64, cost: impl Fn(&LimitSpec, u32) -> u64) {
        let interval =
            if self.world.check().stage == Stage::Full { self.longest_refill() } else { 0 };
        let live = self.live_nodes();
        let nodes = self.nodes.iter().filter(|node| node.state != State::Gone);
        for (turn, node) in
            nodes.map(|node| node.number).collect::<Vec<_>>().into_iter().enumerate()
        {
            for key in 0..self.world.scenario.keys.len() {
                let cost = cost(&self.world.scenario.specs[key], live);
                let costs = vec![KeyCost { key, cost }];
                let request = Request { action: Action::Take, costs, permit: None };
                let at = from + turn as u64 * interval;
                self.run_until(at);
                let holding = Holding::default();
                self.call_at(node, Caller { node: 0, request, gives_up_after: None, holding });
            }
        }
    }
}
