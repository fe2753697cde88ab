//! Another node that goes by this one's id: each hides the other from those who ask which nodes there are.

use std::time::{Duration, Instant};

use tollgate_redis::{Node, NodeRecord, NodeState};

/// When such a node was last seen.
#[derive(Debug, Default)]
pub(crate) struct DuplicateNode {
    seen: Option<(String, Instant)>,
}

impl DuplicateNode {
    /// Looks among the nodes as they are before a heartbeat of this one, its first or a later one. A twin
    /// that is not seen for a lifetime has gone: it may have been this node before it was moved.
    pub(crate) fn look(
        &mut self,
        this: &NodeRecord,
        is_first: bool,
        nodes: &[Node],
        lifetime: Duration,
        now: Instant,
    ) {
        let found = nodes.iter().find(|node| is_twin(this, is_first, node));
        if let Some(other) = found {
            self.seen = Some((other.address.clone(), now));
        }
        self.seen.take_if(|(_, at)| now.duration_since(*at) >= lifetime);
    }

    /// What to say of it.
    pub(crate) fn warning(&self, this: &NodeRecord) -> Option<String> {
        let (other, _) = self.seen.as_ref()?;
        let NodeRecord { id, address, .. } = this;
        Some(format!(
            "two nodes go by the id {id}, this one at {address} and another at {other}; give each its own \
             --node-id"
        ))
    }
}

/// Before the first heartbeat, what is kept under the same address may be of this node before it crashed.
/// Later whatever this one did not write itself is a twin's: behind 0.0.0.0 two have the same address.
fn is_twin(this: &NodeRecord, is_first: bool, node: &Node) -> bool {
    let is_other =
        node.address != this.address || (!is_first && node.registered_at != this.registered_at);
    node.id == this.id && node.state == NodeState::Up && is_other
}
