//! Nodes: who serves, as told by themselves.

use std::time::Duration;

use tollgate::{StoreError, Timestamp};

use super::Directory;
use crate::failure::Failure;
use crate::limit_code::{get_number, micros, put_number};
use crate::resp::{Command, Reply};

/// What a node tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// By what it is told from others.
    pub id: String,
    /// Where it serves.
    pub address: String,
    /// Since when.
    pub registered_at: Timestamp,
}

/// A node as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// By what it is told from others.
    pub id: String,
    /// Where it serves.
    pub address: String,
    /// Since when.
    pub registered_at: Timestamp,
    /// Whether it was heard of lately.
    pub state: NodeState,
    /// When it was last heard of.
    pub seen_at: Timestamp,
}

/// Whether a node was heard of lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// Its last heartbeat still holds.
    Up,
    /// It has missed its heartbeats, and did not take its leave.
    Down,
}

impl Directory {
    /// Tells that the node is there, for `lifetime` from now. A node that stays silent is shown as down for
    /// a day, then forgotten.
    ///
    /// # Errors
    /// Redis could not be told.
    pub async fn heartbeat(&self, node: &NodeRecord, lifetime: Duration) -> Result<(), StoreError> {
        let mut record = Vec::new();
        put_number(&mut record, node.registered_at.as_micros());
        record.extend_from_slice(node.address.as_bytes());
        let arguments =
            |command: Command| command.arg(&node.id).number(micros(lifetime)).arg(&record);
        let key = self.shared.keys.nodes();
        let script = &self.shared.directory_scripts.heartbeat;
        self.shared.run(script, &[key.as_bytes()], arguments).await.map(|_| ())
    }

    /// Forgets the node, which ends.
    ///
    /// # Errors
    /// Redis could not be told.
    pub async fn leave(&self, id: &str) -> Result<(), StoreError> {
        let command = Command::new("HDEL").arg(self.shared.keys.nodes()).arg(id);
        let reply = self.shared.coalescer.link().ask(command).await;
        reply.map(|_| ()).map_err(Failure::into_store_error)
    }

    /// Every node that was heard of within a day, by its id.
    ///
    /// # Errors
    /// Redis could not be asked.
    pub async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        let key = self.shared.keys.nodes();
        let script = &self.shared.directory_scripts.nodes;
        let reply = self.shared.run(script, &[key.as_bytes()], |command| command).await?;
        let unexpected = || Failure::unexpected().into_store_error();
        let Reply::Array(replies) = reply else { return Err(unexpected()) };
        let Some((Reply::Integer(now), told)) = replies.split_first() else {
            return Err(unexpected());
        };
        let now = u64::try_from(*now).map_err(|_| unexpected())?;
        let mut nodes: Vec<Node> =
            told.chunks_exact(2).filter_map(|pair| read(pair, now)).collect();
        nodes.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(nodes)
    }
}

/// A node as it is kept; none if it is not one of ours.
fn read(pair: &[Reply], now: u64) -> Option<Node> {
    let [Reply::Bulk(id), Reply::Bulk(kept)] = pair else { return None };
    let (seen, rest) = get_number(kept)?;
    let (lifetime, rest) = get_number(rest)?;
    let (registered, address) = get_number(rest)?;
    let is_up = now < seen.saturating_add(lifetime);
    Some(Node {
        id: String::from_utf8(id.clone()).ok()?,
        address: String::from_utf8(address.to_vec()).ok()?,
        registered_at: Timestamp::from_micros(registered),
        state: if is_up { NodeState::Up } else { NodeState::Down },
        seen_at: Timestamp::from_micros(seen),
    })
}
