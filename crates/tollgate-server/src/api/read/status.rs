//! How a node fares.

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Clock, MemoryStore, SystemClock};

use crate::app::App;
use crate::wire::time::rfc3339;

/// The answer to /api/status.
#[derive(Debug, Serialize)]
pub(crate) struct Status<'a> {
    ready: bool,
    version: &'static str,
    node: NodeStatus<'a>,
    store: StoreStatus<'a>,
    /// Whether the store is asked; null where it is in this process.
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
    /// Where it is and what runs there, unless it is in this process.
    address: Option<&'a str>,
    server: Option<&'a str>,
    /// How full it is, if it is in this process.
    keys: Option<usize>,
    max_keys: Option<usize>,
    untracked: Option<u64>,
    /// Among how many nodes limits are divided while it is lost.
    nodes: Option<u32>,
    /// What an operator should look at; none when all is well.
    warning: Option<String>,
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
    let (node, loaded) = (app.node(), app.policy_load());
    Status {
        ready: app.is_ready(),
        version: env!("CARGO_PKG_VERSION"),
        node: NodeStatus {
            id: &node.id,
            address: node.address.to_string(),
            started_at: rfc3339(node.started),
            now: rfc3339(SystemClock::new().now()),
        },
        store: store_status(app),
        breaker: app.backend().fallback().map(|store| store.breaker().as_str()),
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

fn store_status(app: &App) -> StoreStatus<'_> {
    let about = app.store_info();
    let occupancy = app.backend().memory().map(MemoryStore::occupancy);
    StoreStatus {
        kind: about.kind,
        why: &about.why,
        address: about.address.as_deref(),
        server: about.server.as_deref(),
        keys: occupancy.map(|occupancy| occupancy.keys),
        max_keys: occupancy.map(|occupancy| occupancy.max_keys),
        untracked: occupancy.map(|occupancy| occupancy.untracked),
        nodes: app.backend().fallback().map(|store| store.nodes().get()),
        warning: warning(app),
    }
}

/// All that an operator should look at, in one text.
pub(crate) fn warning(app: &App) -> Option<String> {
    let occupancy = app.backend().memory().map(MemoryStore::occupancy);
    let is_full = occupancy.is_some_and(|occupancy| occupancy.untracked > 0);
    let full = is_full.then(|| "new keys found no place; raise --max-keys".to_owned());
    let failure = app.metrics().store().warning();
    let all: Vec<String> = full.into_iter().chain(app.warnings().all(failure)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
