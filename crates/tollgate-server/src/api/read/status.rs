//! Status of this node: store, breaker and policy.

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Clock, MemoryStore, SystemClock};

use crate::node::NodeContext;
#[cfg(test)]
use crate::reference_tests::names;
use crate::wire::time::rfc3339;

/// Response of `/api/status`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Status<'a> {
    ready: bool,
    version: &'static str,
    node: NodeStatus<'a>,
    store: StoreStatus<'a>,
    /// The state of the circuit breaker: while it is open, the store is not called. null for memory.
    #[cfg_attr(test, schemars(with = "Option<names::Breaker>"))]
    breaker: Option<&'static str>,
    policy: PolicyStatus<'a>,
}

/// This node.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NodeStatus<'a> {
    id: &'a str,
    address: String,
    #[cfg_attr(test, schemars(with = "names::Time"))]
    started_at: String,
    #[cfg_attr(test, schemars(with = "names::Time"))]
    now: String,
}

/// The store of the counters.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StoreStatus<'a> {
    #[cfg_attr(test, schemars(with = "names::StoreKind"))]
    kind: &'static str,
    /// The setting that selected the store.
    why: &'a str,
    /// The address without the password; null for memory.
    address: Option<&'a str>,
    /// The server software and version; null for memory or if unknown.
    server: Option<&'a str>,
    /// Number of keys in the memory store. This and the next two fields are null with Redis.
    keys: Option<usize>,
    max_keys: Option<usize>,
    untracked: Option<u64>,
    /// Number of nodes that divide the limits in degraded mode; null for memory.
    #[cfg_attr(test, schemars(range(min = 1)))]
    nodes: Option<u32>,
    /// When Redis was lost; null while it works, and for memory.
    #[cfg_attr(test, schemars(with = "Option<names::Time>"))]
    lost_since: Option<String>,
    /// Warnings for operators; null if there are none.
    warning: Option<String>,
}

/// The active policy and its file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PolicyStatus<'a> {
    version: &'a str,
    file: Option<String>,
    rules: usize,
    #[cfg_attr(test, schemars(with = "names::Time"))]
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
        server: info.server(),
        keys: occupancy.map(|occupancy| occupancy.keys),
        max_keys: occupancy.map(|occupancy| occupancy.max_keys),
        untracked: occupancy.map(|occupancy| occupancy.untracked),
        nodes: context.backend().fallback().map(|store| store.nodes().get()),
        lost_since: context.metrics().store().loss().map(|loss| rfc3339(loss.since)),
        warning: context.warning(),
    }
}
