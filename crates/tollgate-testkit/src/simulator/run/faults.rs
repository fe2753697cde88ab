//! What befalls the fleet.

use super::{Planned, Simulation};
use crate::random::Random;
use crate::simulator::check::Well;
use crate::simulator::fleet::State;
use crate::simulator::schedule::{Data, Fault, Silence};
use crate::simulator::setting::{SECOND, TIMEOUT};

impl Simulation {
    pub(super) fn befall(&mut self, fault: Fault) {
        let now = self.world.time.now();
        self.world.check().note(now, || format!("{fault:?}"));
        match fault {
            Fault::Kill(data) => self.kill(data),
            Fault::Start => self.world.condition().store = None,
            Fault::Hang(silence) => self.world.condition().store = Some(silence),
            Fault::Resume => {
                self.world.condition().store = None;
                self.world.run_late();
            }
            Fault::Cut(node, silence) => self.cut(node, Some(silence)),
            Fault::Heal(node) => {
                self.cut(node, None);
                self.world.run_late();
            }
            Fault::Slow(slow) => self.world.condition().slow = Some(slow),
            Fault::Brisk => self.world.condition().slow = None,
            Fault::Step(by) => {
                self.world.time.step_store(by);
                self.world.check().upset(now);
            }
            Fault::Pause(node) => self.pause(node),
            Fault::Wake(node) => self.wake(node),
            Fault::Join => {
                self.join(self.live() + 1);
                self.tell_number();
            }
            Fault::Leave(node) => self.leave(node),
            Fault::Learn(node) => {
                let live = self.live();
                self.nodes[node].learn(&self.world, live);
            }
        }
        self.see_who_is_well();
    }

    fn kill(&self, data: Data) {
        let mut condition = self.world.condition();
        condition.store = Some(Silence::Refuses);
        condition.life += 1;
        condition.late.clear();
        drop(condition);
        if data == Data::Lost {
            self.world.empty_store();
        }
    }

    fn cut(&self, node: usize, silence: Option<Silence>) {
        if let Some(link) = self.world.condition().links.get_mut(node) {
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
        self.world.check().woke(node.number);
        let waiting = std::mem::take(&mut node.waiting);
        waiting.into_iter().for_each(|task| self.poll(task));
    }

    /// It goes with all that it owes.
    fn leave(&mut self, number: usize) {
        if self.live() < 2 || self.nodes.get(number).is_none_or(|node| node.state == State::Gone) {
            return;
        }
        self.nodes[number].state = State::Gone;
        for task in &mut self.tasks {
            if task.as_ref().is_some_and(|task| task.node == number) {
                *task = None;
            }
        }
        self.tell_number();
    }

    /// Nodes hear of it sooner or later.
    fn tell_number(&mut self) {
        let now = self.world.time.now();
        let mut random = Random::new(self.world.setting.seed ^ now);
        for node in 0..self.nodes.len() {
            let lag = random.magnitude(10 * SECOND);
            self.plan(now + lag, Planned::Fault(Fault::Learn(node)));
        }
    }

    fn see_who_is_well(&self) {
        let (condition, mut check) = (self.world.condition(), self.world.check());
        let round_trip = self.world.setting.round_trip;
        let is_heard = condition.slow.is_none_or(|slow| slow + round_trip <= TIMEOUT);
        for node in &self.nodes {
            let is_well =
                condition.silence(node.number).is_none() && is_heard && node.state == State::Live;
            let well = if is_well { Well::Yes } else { Well::No };
            check.set_well(node.number, well, self.world.time.now());
        }
    }
}
