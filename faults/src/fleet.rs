//! Nodes that share a store.

use std::net::SocketAddr;
use std::ops::Deref;

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

    /// Waits until each knows how many there are.
    pub fn wait_acquainted(&self) {
        let all = self.nodes.len();
        eventually("every node knows of all", || {
            self.nodes.iter().all(|node| node.status()["store"]["nodes"] == all)
        });
    }
}

impl Deref for Fleet {
    type Target = [Node];

    fn deref(&self) -> &[Node] {
        &self.nodes
    }
}
