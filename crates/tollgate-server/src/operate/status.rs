//! How a node fares.

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Clock, SystemClock};

use crate::app::App;
use crate::wire::time::rfc3339;

/// The answer to /api/nodes.
#[derive(Debug, Serialize)]
pub(crate) struct Nodes<'a> {
    nodes: [Node<'a>; 1],
}

#[derive(Debug, Serialize)]
struct Node<'a> {
    id: &'a str,
    address: String,
    state: &'static str,
    registered_at: String,
}

/// The nodes known: on memory, this one.
pub(crate) fn nodes(app: &App) -> Nodes<'_> {
    let node = app.node();
    let registered_at = rfc3339(node.started);
    let address = node.address.to_string();
    Nodes { nodes: [Node { id: &node.id, address, state: "Up", registered_at }] }
}

/// The answer to /api/status.
#[derive(Debug, Serialize)]
pub(crate) struct Status<'a> {
    ready: bool,
    version: &'static str,
    node: NodeStatus<'a>,
    store: StoreStatus<'a>,
    breaker: &'static str,
    policy: PolicyStatus<'a>,
}

#[derive(Debug, Serialize)]
struct NodeStatus<'a> {
    id: &'a str,
    address: String,
    started_at: String,
    now: String,
}

#[derive(Debug, Serialize)]
struct StoreStatus<'a> {
    kind: &'a str,
    keys: usize,
    max_keys: usize,
    untracked: u64,
    /// What an operator should look at; none when all is well.
    warning: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct PolicyStatus<'a> {
    version: &'a str,
    file: Option<String>,
    rules: usize,
    loaded_at: String,
    /// Why the file as it is now is not in force.
    error: Option<String>,
    warnings: &'a [String],
}

/// How this node fares under the policy in force.
pub(crate) fn status<'a>(app: &'a App, policy: &'a Policy) -> Status<'a> {
    let (node, occupancy, loaded) = (app.node(), app.limiter().store().occupancy(), app.loaded());
    let is_full = occupancy.untracked > 0;
    Status {
        ready: app.is_ready(),
        version: env!("CARGO_PKG_VERSION"),
        node: NodeStatus {
            id: &node.id,
            address: node.address.to_string(),
            started_at: rfc3339(node.started),
            now: rfc3339(SystemClock::new().now()),
        },
        store: StoreStatus {
            kind: app.store(),
            keys: occupancy.keys,
            max_keys: occupancy.max_keys,
            untracked: occupancy.untracked,
            warning: is_full.then_some("new keys found no place; raise --max-keys"),
        },
        breaker: "closed",
        policy: PolicyStatus {
            version: policy.version(),
            file: app.policy_file().path().map(|path| path.display().to_string()),
            rules: policy.rules().len(),
            loaded_at: rfc3339(loaded.at),
            error: loaded.error,
            warnings: policy.warnings(),
        },
    }
}
