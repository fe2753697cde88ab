//! Listing of nodes.

use serde::Serialize;
use tollgate::{Clock, SystemClock};
use tollgate_redis::NodeState;

use super::scan::PageRequest;
use crate::error::ApiError;
use crate::node::NodeContext;
#[cfg(test)]
use crate::reference_tests::names;
use crate::wire::time::rfc3339;

/// Response of `/api/nodes`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    /// The cursor of the next page; null on the last page.
    cursor: Option<String>,
}

/// A node that shares the store.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Node {
    id: String,
    address: String,
    #[cfg_attr(test, schemars(with = "names::NodeState"))]
    state: &'static str,
    #[cfg_attr(test, schemars(with = "names::Time"))]
    registered_at: String,
    /// Time of the node's last report, by the clock of Redis.
    #[cfg_attr(test, schemars(with = "names::Time"))]
    last_seen: String,
    /// Whether the last report is at least 5 seconds old.
    silent: bool,
}

const UP: &str = "Up";
const DOWN: &str = "Down";

/// Returns a page of the nodes that share the Redis, sorted by id. With the memory store, returns this node.
pub(super) async fn nodes(context: &NodeContext, request: &PageRequest) -> Result<Nodes, ApiError> {
    if request.tenant.is_some() {
        let detail = "is not supported here: nodes serve all tenants";
        return Err(ApiError::invalid(detail).at("tenant"));
    }
    let mut nodes = all(context).await?;
    nodes.sort_unstable_by(|left, right| left.id.cmp(&right.id));
    let is_after = |node: &Node| request.cursor.as_ref().is_none_or(|last| node.id > *last);
    nodes.retain(|node| node.id.starts_with(&request.prefix) && is_after(node));
    let is_last = nodes.len() <= request.page_size;
    nodes.truncate(request.page_size);
    let cursor = nodes.last().filter(|_| !is_last).map(|node| node.id.clone());
    Ok(Nodes { nodes, cursor })
}

async fn all(context: &NodeContext) -> Result<Vec<Node>, ApiError> {
    let Some(store) = context.backend().fallback() else { return Ok(vec![Node::this(context)]) };
    store.ensure_available().map_err(|error| ApiError::from(&error))?;
    let nodes = store.store().directory().nodes().await;
    let nodes = nodes.inspect_err(|error| context.metrics().store().note_failure(error));
    let nodes = nodes.map_err(|error| ApiError::from(&error))?;
    Ok(nodes.into_iter().map(Node::from).collect())
}

impl Node {
    fn this(context: &NodeContext) -> Self {
        let node = context.identity();
        Self {
            id: node.id.clone(),
            address: node.address.to_string(),
            state: UP,
            registered_at: rfc3339(node.started),
            last_seen: rfc3339(SystemClock::new().now()),
            silent: false,
        }
    }
}

impl From<tollgate_redis::Node> for Node {
    fn from(node: tollgate_redis::Node) -> Self {
        Self {
            id: node.id,
            address: node.address,
            state: match node.state {
                NodeState::Up => UP,
                NodeState::Down => DOWN,
            },
            registered_at: rfc3339(node.registered_at),
            last_seen: rfc3339(node.last_seen),
            silent: node.is_silent,
        }
    }
}
