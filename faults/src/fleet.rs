//! Nodes that share a store.

use std::net::SocketAddr;
use std::ops::Deref;

use tollgate_testkit::wait::eventually;

use crate::node::Node;

/// Nodes with frequent reports.
#[derive(Debug)]
pub struct Fleet {
    nodes: Vec<Node>,
}

impl Fleet {
    pub(crate) fn new(nodes: Vec<Node>) -> Self {
        Self { nodes }
    }

    /// The addresses of the nodes.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(Node::address).collect()
    }

    /// Waits until every node knows the number of nodes.
    pub fn wait_until_counted(&self) {
        let all = self.nodes.len();
        eventually("every node knows the number of nodes", || {
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
