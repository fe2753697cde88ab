//! Detects another node with the same node id. Each overwrites the other's record in the directory.

use std::time::{Duration, Instant};

use tollgate_redis::{Node, NodeRecord, NodeState};

/// The duplicate seen last: its address, and when.
#[derive(Debug, Default)]
pub(crate) struct DuplicateNode {
    seen: Option<(String, Instant)>,
}

impl DuplicateNode {
    /// Examines the record under this node's id before its first or next report. A duplicate that is not seen for a
    /// node lifetime is gone: it may have been this node before it moved to another address.
    pub(crate) fn update(
        &mut self,
        own: &NodeRecord,
        is_first: bool,
        previous: Option<&Node>,
        lifetime: Duration,
        now: Instant,
    ) {
        if let Some(duplicate) = previous.filter(|node| is_duplicate(own, is_first, node)) {
            self.seen = Some((duplicate.address.clone(), now));
        }
        self.seen.take_if(|(_, at)| now.duration_since(*at) >= lifetime);
    }

    /// Returns the warning for operators, if there is a duplicate.
    pub(crate) fn warning(&self, own: &NodeRecord) -> Option<String> {
        let (duplicate, _) = self.seen.as_ref()?;
        let NodeRecord { id, address, .. } = own;
        Some(format!(
            "two nodes use the id {id}: this one at {address} and one at {duplicate}; give each node its own --node-id"
        ))
    }
}

/// Before the first report, a record with the same address may be left from a crash of this node. Later, any record
/// that this node did not write is a duplicate's: two nodes that bind 0.0.0.0 have the same address.
fn is_duplicate(own: &NodeRecord, is_first: bool, node: &Node) -> bool {
    let is_other =
        node.address != own.address || (!is_first && node.registered_at != own.registered_at);
    node.state == NodeState::Up && is_other
}
