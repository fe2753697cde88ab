//! The nodes there are.

use serde::Serialize;
use tollgate_redis::NodeState;

use crate::app::App;
use crate::error::ApiError;
use crate::wire::time::rfc3339;

/// The answer to /api/nodes.
#[derive(Debug, Serialize)]
pub(crate) struct Nodes {
    nodes: Vec<Node>,
}

#[derive(Debug, Serialize)]
struct Node {
    id: String,
    address: String,
    state: &'static str,
    registered_at: String,
}

const UP: &str = "Up";
const DOWN: &str = "Down";

/// The nodes that share a Redis; on memory, this one.
pub(crate) async fn nodes(app: &App) -> Result<Nodes, ApiError> {
    let Some(store) = app.backend().fallback() else {
        return Ok(Nodes { nodes: vec![Node::this(app)] });
    };
    store.ensure_asked().map_err(|error| ApiError::from(&error))?;
    let nodes = store.store().directory().nodes().await;
    let nodes = nodes.inspect_err(|error| app.metrics().store().note_failure(error));
    let nodes = nodes.map_err(|error| ApiError::from(&error))?;
    Ok(Nodes { nodes: nodes.into_iter().map(Node::from).collect() })
}

impl Node {
    fn this(app: &App) -> Self {
        let node = app.node();
        Self {
            id: node.id.clone(),
            address: node.address.to_string(),
            state: UP,
            registered_at: rfc3339(node.started),
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
        }
    }
}
