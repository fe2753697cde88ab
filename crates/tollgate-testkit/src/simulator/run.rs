//! One hour, from its first moment to the end and a little beyond.

mod faults;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::check::{Role, Stage};
use super::clockwork::{Due, TaskId};
use super::fleet::{Node, State};
use super::request::{Act, Request, Want};
use super::schedule::{self, Fault, HOUR, Silence};
use super::setting::{Attendance, SECOND, Setting, refill, share};
use super::traffic::{self, Caller, Keeping};
use super::world::World;
use super::{Failure, Figures};
use crate::random::Random;

/// The hour begins at about this time: late enough that a clock may step back.
const BEGINNING: u64 = 1_794_765_516_667_233;

/// Whoever is not looked after is asked again within this time after the hour.
const COMEBACK: u64 = 40 * SECOND;

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
        let setting = Setting::draw(seed, &mut random);
        let faults = schedule::draw(&setting, &mut random);
        let callers = traffic::draw(&setting, &faults, &mut random);
        let start = BEGINNING + random.within(0, HOUR);
        let nodes = setting.nodes;
        let world = Arc::new(World::new(setting, start, timeline));
        let (planned, tasks) = (Vec::new(), Vec::new());
        let mut simulation = Self { world, nodes: Vec::new(), planned, tasks, start };
        simulation.world.check().note(start, || format!("{:#?}", simulation.world.setting));
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

    pub(super) fn judge(mut self) -> Result<Figures, Failure> {
        self.run();
        self.judged()
    }

    pub(super) fn judged(&self) -> Result<Figures, Failure> {
        let mut check = self.world.check();
        match check.take_failure() {
            Some((why, timeline)) => Err(Failure { seed: self.world.setting.seed, why, timeline }),
            None => Ok(check.figures),
        }
    }

    pub(super) fn timeline(&self) -> Vec<String> {
        self.world.check().take_timeline()
    }

    /// The hour, then a time without faults until everything has come back, then one more loss.
    pub(super) fn run(&mut self) {
        let end = self.start + HOUR;
        self.run_until(end);
        self.all_is_well();
        self.run_until(end + COMEBACK - SECOND);
        // Whoever comes first looks after the store, and the next finds it: what a clock left ahead is repaired.
        self.ask_everywhere(end + COMEBACK, |_, _| 0);
        self.ask_everywhere(end + COMEBACK + SECOND, |_, _| 0);
        let longest = self.world.setting.specs.iter().map(|spec| 3 * spec.window_us).max();
        let quiet = end + COMEBACK + 2 * SECOND;
        self.run_until(quiet);
        self.nobody_attends();
        self.run_until(quiet + longest.unwrap_or(0));
        let rested = quiet + longest.unwrap_or(0) + self.longest_refill();
        self.expect(Stage::Rested, rested);
        self.ask_everywhere(rested, |spec, _| spec.capacity());
        // Each node has all of it, once what the one before took has come back.
        let lost = rested + (self.nodes.len() as u64 + 1) * self.longest_refill();
        self.run_until(lost);
        self.befall(Fault::Hang(Silence::Refuses));
        self.expect(Stage::LostAgain, lost);
        self.ask_everywhere(lost, |spec, nodes| share(spec, nodes).capacity());
        self.run_until(lost + SECOND);
        let now = self.world.time.now();
        self.world.check().holds_bounds(now);
    }

    fn run_until(&mut self, end: u64) {
        while !self.world.check().has_failed()
            && let Some(due) = self.world.time.next(end)
        {
            match due {
                Due::Task(task) => self.poll(task),
                Due::Planned(number) => {
                    let planned = self.planned[number].clone();
                    self.happen(planned);
                }
            }
        }
        self.world.time.rest(end);
    }

    fn plan(&mut self, at: u64, planned: Planned) {
        self.world.time.plan(at, Due::Planned(self.planned.len()));
        self.planned.push(planned);
    }

    fn happen(&mut self, planned: Planned) {
        match planned {
            Planned::Fault(fault) => self.befall(fault),
            Planned::Call(caller) => self.call(caller),
            Planned::GiveUp(task) => {
                if let Some(Task { node, .. }) = self.tasks[task].take() {
                    self.world.check().gave_up(node, task, self.world.time.now());
                }
            }
        }
    }

    fn call(&mut self, caller: Caller) {
        let live: Vec<usize> = self
            .nodes
            .iter()
            .filter(|node| node.state != State::Gone)
            .map(|it| it.number)
            .collect();
        let Some(node) = Random::new(caller.node).pick(&live).copied() else { return };
        self.call_at(node, caller);
    }

    fn call_at(&mut self, node: usize, caller: Caller) {
        let role = Role::Calls { act: caller.request.act, permit: caller.request.permit };
        let gives_up = caller.gives_up;
        let future = self.nodes[node].answers(&self.world, caller);
        let task = self.spawn(node, role, Box::pin(future));
        if let Some(after) = gives_up {
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

    /// Lets a task go on, unless its node stands still.
    fn poll(&mut self, task: TaskId) {
        let Some(Task { node, future }) = &mut self.tasks[task] else { return };
        let node = &mut self.nodes[*node];
        if node.state == State::Paused {
            node.waiting.push(task);
            return;
        }
        self.world.time.set_task(task);
        let mut context = Context::from_waker(Waker::noop());
        if future.as_mut().poll(&mut context).is_ready() {
            self.tasks[task] = None;
        }
        self.world.acted(node.number, node.asks());
    }

    fn join(&mut self, nodes: u32) {
        let node = Node::new(&self.world, self.nodes.len(), nodes);
        let (number, attends) = (node.number, node.attends(&self.world));
        self.nodes.push(node);
        if self.world.setting.attendance == Attendance::EachSecond {
            let task = self.spawn(number, Role::Attends, Box::pin(attends));
            self.poll(task);
        }
    }

    fn live(&self) -> u32 {
        let live = self.nodes.iter().filter(|node| node.state != State::Gone).count();
        u32::try_from(live).unwrap_or(1)
    }

    fn all_is_well(&mut self) {
        for node in 0..self.nodes.len() {
            self.befall(Fault::Heal(node));
            self.befall(Fault::Wake(node));
        }
        self.befall(Fault::Resume);
        self.befall(Fault::Brisk);
    }

    fn nobody_attends(&mut self) {
        let attends = |task: &TaskId| self.world.check().is_attending(*task);
        let attending: Vec<TaskId> = (0..self.tasks.len()).filter(attends).collect();
        attending.into_iter().for_each(|task| self.tasks[task] = None);
    }

    fn expect(&self, stage: Stage, now: u64) {
        let mut check = self.world.check();
        check.stage = stage;
        check.note(now, || format!("{stage:?}"));
    }

    /// How long everything takes to come back, in the store and on every node.
    fn longest_refill(&self) -> u64 {
        let setting = &self.world.setting;
        let most = u32::try_from(self.nodes.len()).unwrap_or(1);
        let refills = setting
            .specs
            .iter()
            .flat_map(|spec| (1..=most).map(|nodes| refill(&share(spec, nodes))));
        refills.max().unwrap_or(0) + SECOND
    }

    /// Takes from every key on every node, one node after the other.
    fn ask_everywhere(&mut self, from: u64, cost: impl Fn(&crate::spec::LimitSpec, u32) -> u64) {
        let rest =
            if self.world.check().stage == Stage::Rested { self.longest_refill() } else { 0 };
        let live = self.live();
        let nodes = self.nodes.iter().filter(|node| node.state != State::Gone);
        for (turn, node) in
            nodes.map(|node| node.number).collect::<Vec<_>>().into_iter().enumerate()
        {
            for key in 0..self.world.setting.keys.len() {
                let cost = cost(&self.world.setting.specs[key], live);
                let request =
                    Request { act: Act::Take, wants: vec![Want { key, cost }], permit: None };
                let at = from + turn as u64 * rest;
                self.run_until(at);
                let caller = Caller { node: 0, request, gives_up: None, keeps: Keeping::default() };
                self.call_at(node, caller);
            }
        }
    }
}
