//! Status of this node: store, breaker and policy.

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Clock, MemoryStore, SystemClock};

use crate::node::NodeContext;
use crate::wire::time::rfc3339;

/// Response of `/api/status`.
#[derive(Debug, Serialize)]
pub(crate) struct Status<'a> {
    ready: bool,
    version: &'static str,
    node: NodeStatus<'a>,
    store: StoreStatus<'a>,
    /// State of the breaker; null with the memory store.
    breaker: Option<&'static str>,
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
    kind: &'static str,
    why: &'a str,
    /// Address and server software of Redis; null with the memory store.
    address: Option<&'a str>,
    server: Option<&'a str>,
    /// Occupancy of the memory store; null with Redis.
    keys: Option<usize>,
    max_keys: Option<usize>,
    untracked: Option<u64>,
    /// Number of nodes that divide the limits in degraded mode; null with the memory store.
    nodes: Option<u32>,
    /// Warnings for operators, joined; null if there are none.
    warning: Option<String>,
}

#[derive(Debug, Serialize)]
struct PolicyStatus<'a> {
    version: &'a str,
    file: Option<String>,
    rules: usize,
    loaded_at: String,
    /// Why the current file is not active.
    error: Option<String>,
    warnings: &'a [String],
}

/// Returns the status of this node with the active policy.
pub(super) fn status<'a>(context: &'a NodeContext, policy: &'a Policy) -> Status<'a> {
    let (node, load) = (context.identity(), context.policy_load());
    Status {
        ready: context.is_ready(),
        version: env!("CARGO_PKG_VERSION"),
        node: NodeStatus {
            id: &node.id,
            address: node.address.to_string(),
            started_at: rfc3339(node.started),
            now: rfc3339(SystemClock::new().now()),
        },
        store: store_status(context),
        breaker: context.backend().fallback().map(|store| store.breaker().as_str()),
        policy: PolicyStatus {
            version: policy.version(),
            file: context.policy_file().path().map(|path| path.display().to_string()),
            rules: policy.rules().len(),
            loaded_at: rfc3339(load.at),
            error: load.error,
            warnings: policy.warnings(),
        },
    }
}

fn store_status(context: &NodeContext) -> StoreStatus<'_> {
    let info = context.store_info();
    let occupancy = context.backend().memory().map(MemoryStore::occupancy);
    StoreStatus {
        kind: info.kind,
        why: &info.why,
        address: info.address.as_deref(),
        server: info.server.as_deref(),
        keys: occupancy.map(|occupancy| occupancy.keys),
        max_keys: occupancy.map(|occupancy| occupancy.max_keys),
        untracked: occupancy.map(|occupancy| occupancy.untracked),
        nodes: context.backend().fallback().map(|store| store.nodes().get()),
        warning: context.warning(),
    }
}
