//! The nodes of a deployment, by their heartbeats.

use std::time::Duration;

use tollgate::{StoreError, Timestamp};

use super::Directory;
use crate::failure::Failure;
use crate::limit_code::{micros, read_number, write_number};
use crate::resp::{Command, Reply};
use crate::script::Entry;

/// The data that a node registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Unique name of the node.
    pub id: String,
    /// Address that the node serves.
    pub address: String,
    /// Start of the node.
    pub registered_at: Timestamp,
}

/// A registered node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Unique name of the node.
    pub id: String,
    /// Address that the node serves.
    pub address: String,
    /// Start of the node.
    pub registered_at: Timestamp,
    /// Whether its last heartbeat is still valid.
    pub state: NodeState,
    /// Time of its last heartbeat, by the clock of Redis.
    pub seen_at: Timestamp,
}

/// Whether the last heartbeat of a node is still valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// The last heartbeat is valid.
    Up,
    /// The last heartbeat has expired, and the node has not left.
    Down,
}

impl Directory {
    /// Registers a node for `lifetime` from now. Without further heartbeats it is listed as down for a day, then
    /// removed.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn heartbeat(&self, node: &NodeRecord, lifetime: Duration) -> Result<(), StoreError> {
        let mut record = Vec::new();
        write_number(&mut record, node.registered_at.as_micros());
        record.extend_from_slice(node.address.as_bytes());
        let lifetime = micros(lifetime).to_string().into_bytes();
        let arguments = vec![node.id.clone().into_bytes(), lifetime, record];
        let keys = vec![self.keys.nodes().into_bytes()];
        self.run(Entry::Heartbeat, keys, arguments).await.map(|_| ())
    }

    /// Removes a node that shuts down.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn leave(&self, id: &str) -> Result<(), StoreError> {
        let key = self.keys.nodes();
        let command = Command::new("HDEL").arg(&key).arg(id);
        self.request(&key, command).await.map(|_| ())
    }

    /// Lists all nodes with a heartbeat in the last day, ordered by id.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        let keys = vec![self.keys.nodes().into_bytes()];
        let reply = self.run(Entry::Nodes, keys, Vec::new()).await?;
        let unexpected = || Failure::unexpected().into_store_error();
        let Reply::Array(replies) = reply else { return Err(unexpected()) };
        let Some((Reply::Integer(now), pairs)) = replies.split_first() else {
            return Err(unexpected());
        };
        let now = u64::try_from(*now).map_err(|_| unexpected())?;
        let mut nodes: Vec<Node> =
            pairs.chunks_exact(2).filter_map(|pair| parse(pair, now)).collect();
        nodes.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(nodes)
    }
}

/// Parses a node, or returns `None` if its format is unknown.
fn parse(pair: &[Reply], now: u64) -> Option<Node> {
    let [Reply::Bulk(id), Reply::Bulk(record)] = pair else { return None };
    let (seen, rest) = read_number(record)?;
    let (lifetime, rest) = read_number(rest)?;
    let (registered, address) = read_number(rest)?;
    let is_up = now < seen.saturating_add(lifetime);
    Some(Node {
        id: String::from_utf8(id.clone()).ok()?,
        address: String::from_utf8(address.to_vec()).ok()?,
        registered_at: Timestamp::from_micros(registered),
        state: if is_up { NodeState::Up } else { NodeState::Down },
        seen_at: Timestamp::from_micros(seen),
    })
}
