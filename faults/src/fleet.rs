//! Nodes that share a store.

use std::net::SocketAddr;
use std::ops::Deref;

use tollgate_testkit::server::{Raw, Value};
use tollgate_testkit::wait::eventually;

use crate::node::Node;

/// Some nodes, each of which says often that it is up.
#[derive(Debug)]
pub struct Fleet {
    nodes: Vec<Node>,
}

impl Fleet {
    pub(crate) fn new(nodes: Vec<Node>) -> Self {
        Self { nodes }
    }

    /// Where they listen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(Node::address).collect()
    }

    /// Waits until each knows of all. A node looks who is there before it says that it is, so from its
    /// second word on it has seen all who were there at the first.
    pub fn wait_acquainted(&self, raw: &mut Raw) {
        let mut beats = || raw.call(&["HVALS", "rl:nodes"]).array().to_vec();
        let mut all = Vec::new();
        eventually("every node has said that it is up", || {
            all = beats();
            all.len() == self.nodes.len()
        });
        for _ in 0..2 {
            eventually("every node has said it again", || {
                let now = beats();
                !now.iter().any(|beat: &Value| all.contains(beat))
            });
            all = beats();
        }
    }
}

impl Deref for Fleet {
    type Target = [Node];

    fn deref(&self) -> &[Node] {
        &self.nodes
    }
}
