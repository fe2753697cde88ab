//! What faults do.

use super::network::Event;
use super::node::Node;
use super::run::Simulation;
use super::scenario::{Fault, SECOND};

impl Simulation<'_> {
    pub(super) fn apply(&mut self, fault: Fault) {
        let world = self.world;
        match fault {
            Fault::StoreLost => {
                world.network().lose_store();
                self.nodes.iter().for_each(|node| node.store.store().subscription_lost());
            }
            Fault::StoreFound => {
                world.network().is_store_lost = false;
                self.subscribe(0..self.nodes.len());
            }
            Fault::Partition(part) => {
                let nodes = self.nodes.len() * part / 1000;
                world.network().partitioned = nodes;
                let cut = self.nodes.iter().take(nodes);
                cut.for_each(|node| node.store.store().subscription_lost());
            }
            Fault::Heal => {
                let nodes = std::mem::take(&mut world.network().partitioned);
                self.subscribe(0..nodes);
            }
            Fault::Restart(node) => self.restart(node),
        }
    }

    /// Nodes subscribe again at different times within a second.
    fn subscribe(&self, nodes: std::ops::Range<usize>) {
        let mut network = self.world.network();
        for node in nodes {
            let at = self.world.now() + network.random(SECOND);
            network.schedule(at, Event::Subscribed(node));
        }
    }

    fn restart(&mut self, number: usize) {
        self.count_leases(number);
        let process = self.nodes[number].process + 1;
        for index in 0..self.tasks.len() {
            if self.tasks[index].as_ref().is_some_and(|task| task.node == number) {
                self.tasks[index] = None;
                self.free.push(index);
            }
        }
        self.nodes[number] = Node::new(self.world, number, process);
        self.world.network().restart(number, process);
    }
}
