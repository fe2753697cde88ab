//! The nodes of a deployment, by their reports.

use std::time::Duration;

use tollgate::{StoreError, Timestamp};

use super::Directory;
use crate::failure::Failure;
use crate::limit_code::{read_number, write_number};
use crate::resp::Reply;
use crate::script::Entry;

/// Time without a report after which a node is silent.
const SILENT_AFTER: Duration = Duration::from_secs(5);

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
    /// Whether the lifetime of its last report has not ended.
    pub state: NodeState,
    /// Time of its last report, by the clock of Redis.
    pub last_seen: Timestamp,
    /// Whether its last report is at least 5 seconds old. A silent node counts as up until its lifetime has ended.
    pub is_silent: bool,
}

/// Whether the lifetime of a node's last report has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// The lifetime has not ended.
    Up,
    /// The lifetime has ended, and the node has not left.
    Down,
}

impl Directory {
    /// Removes a node that shuts down, and adds this to the event log. Another node with the same id stays registered.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn leave(&self, node: &NodeRecord) -> Result<(), StoreError> {
        let keys = &self.keys;
        let keys = [
            keys.nodes(),
            keys.node_deadlines(),
            keys.node_departures(),
            keys.node_seen(),
            keys.event_log(),
            keys.event_count(),
        ];
        let keys = keys.map(String::into_bytes).to_vec();
        let arguments = vec![node.id.clone().into_bytes(), node.encode()];
        self.run(Entry::Leave, keys, arguments).await.map(|_| ())
    }

    /// Lists all nodes with a report in the last day, ordered by id.
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

impl NodeRecord {
    /// Encodes the part of the stored record that the node itself determines.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut record = Vec::new();
        write_number(&mut record, self.registered_at.as_micros());
        record.extend_from_slice(self.address.as_bytes());
        record
    }
}

impl Node {
    /// Parses a stored record at a time in microseconds, or returns `None` if its format is unknown.
    pub(super) fn parse(id: &[u8], record: &[u8], now: u64) -> Option<Self> {
        let (seen, rest) = read_number(record)?;
        let (lifetime, rest) = read_number(rest)?;
        let (registered, address) = read_number(rest)?;
        let is_up = now < seen.saturating_add(lifetime);
        let (now, last_seen) = (Timestamp::from_micros(now), Timestamp::from_micros(seen));
        Some(Self {
            id: String::from_utf8(id.to_vec()).ok()?,
            address: String::from_utf8(address.to_vec()).ok()?,
            registered_at: Timestamp::from_micros(registered),
            state: if is_up { NodeState::Up } else { NodeState::Down },
            last_seen,
            is_silent: now >= last_seen + SILENT_AFTER,
        })
    }
}

fn parse(pair: &[Reply], now: u64) -> Option<Node> {
    let [Reply::Bulk(id), Reply::Bulk(record)] = pair else { return None };
    Node::parse(id, record, now)
}
