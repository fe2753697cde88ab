//! Applies faults to the fleet.

use super::{Planned, Simulation};
use crate::random::Random;
use crate::simulator::node::State;
use crate::simulator::scenario::{SECOND, TIMEOUT};
use crate::simulator::schedule::{Data, Fault, Silence};

impl Simulation {
    pub(super) fn apply_fault(&mut self, fault: Fault) {
        let now = self.world.time.now();
        self.world.check().log(now, || format!("{fault:?}"));
        match fault {
            Fault::Kill(data) => self.kill(data),
            Fault::Start => self.world.network().store_silence = None,
            Fault::Hang(silence) => self.world.network().store_silence = Some(silence),
            Fault::Resume => {
                self.world.network().store_silence = None;
                self.world.run_late();
            }
            Fault::Cut(node, silence) => self.set_link_silence(node, Some(silence)),
            Fault::Heal(node) => {
                self.set_link_silence(node, None);
                self.world.run_late();
            }
            Fault::Slow(latency) => self.world.network().extra_latency = Some(latency),
            Fault::NormalSpeed => self.world.network().extra_latency = None,
            Fault::StepClock(by) => self.world.step_store_clock(by),
            Fault::Pause(node) => self.pause(node),
            Fault::Wake(node) => self.wake(node),
            Fault::Join => {
                self.join(self.live_nodes() + 1);
                self.plan_node_count_updates();
            }
            Fault::Leave(node) => self.leave(node),
            Fault::UpdateNodeCount(node) => {
                let live = self.live_nodes();
                self.nodes[node].set_nodes(&self.world, live);
            }
        }
        self.update_reachability();
    }

    fn kill(&self, data: Data) {
        let mut network = self.world.network();
        network.store_silence = Some(Silence::Refuses);
        network.kills += 1;
        network.late_requests.clear();
        drop(network);
        if data == Data::Lost {
            self.world.empty_store();
        }
    }

    fn set_link_silence(&self, node: usize, silence: Option<Silence>) {
        if let Some(link) = self.world.network().link_silences.get_mut(node) {
            *link = silence;
        }
    }

    fn pause(&mut self, node: usize) {
        if let Some(node) = self.nodes.get_mut(node).filter(|node| node.state == State::Live) {
            node.state = State::Paused;
        }
    }

    fn wake(&mut self, node: usize) {
        let Some(node) = self.nodes.get_mut(node).filter(|node| node.state == State::Paused) else {
            return;
        };
        node.state = State::Live;
        self.world.check().node_woke(node.number);
        let waiting = std::mem::take(&mut node.waiting);
        waiting.into_iter().for_each(|task| self.poll(task));
    }

    /// Removes a node; its outage ledger is lost.
    fn leave(&mut self, number: usize) {
        let is_gone = |node: &super::Node| node.state == State::Gone;
        if self.live_nodes() < 2 || self.nodes.get(number).is_none_or(is_gone) {
            return;
        }
        self.nodes[number].state = State::Gone;
        for task in &mut self.tasks {
            if task.as_ref().is_some_and(|task| task.node == number) {
                *task = None;
            }
        }
        self.plan_node_count_updates();
    }

    /// Plans when each node receives the new number of nodes.
    fn plan_node_count_updates(&mut self) {
        let now = self.world.time.now();
        let mut random = Random::new(self.world.scenario.seed ^ now);
        for node in 0..self.nodes.len() {
            let lag = random.magnitude(10 * SECOND);
            self.plan(now + lag, Planned::Fault(Fault::UpdateNodeCount(node)));
        }
    }

    /// Passes to the checker which nodes the store replies to in time.
    fn update_reachability(&self) {
        let (network, mut check) = (self.world.network(), self.world.check());
        let round_trip = self.world.scenario.round_trip;
        let is_fast = network.extra_latency.is_none_or(|extra| extra + round_trip <= TIMEOUT);
        for node in &self.nodes {
            let is_reachable =
                network.silence(node.number).is_none() && is_fast && node.state == State::Live;
            check.set_reachable(node.number, is_reachable, self.world.time.now());
        }
    }
}
