//! Start of the server: the data directory, the node count of a start without Redis, and the first log lines.

use std::num::NonZeroU32;
use std::sync::Arc;

use tracing::{info, warn};

use crate::error::ServeError;
use crate::files::data_directory::DataDirectory;
use crate::node::{NodeContext, RedisCopy};
use crate::settings::{Settings, StoreChoice};

/// Opens the data directory, if there is one: for the memory store, or for the copy of a Redis.
pub(super) fn open_data_directory(
    settings: &Settings,
) -> Result<(Option<DataDirectory>, Option<Arc<RedisCopy>>), ServeError> {
    let Some(path) = settings.data_dir.clone() else { return Ok((None, None)) };
    let directory = DataDirectory::open(path).map_err(ServeError::new)?;
    Ok(match settings.store {
        StoreChoice::Memory { .. } => (Some(directory), None),
        StoreChoice::Redis { .. } => {
            let copy = RedisCopy::open(directory, settings.redis.node_lifetime);
            (None, Some(Arc::new(copy)))
        }
    })
}

/// The number of nodes that limits are divided by after a start without Redis, and where it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartNodes {
    pub(super) count: NonZeroU32,
    source: &'static str,
}

impl StartNodes {
    pub(super) fn of(copy: Option<&RedisCopy>, settings: &Settings) -> Self {
        let saved = copy.and_then(RedisCopy::nodes).map(|count| (count, "--data-dir"));
        let expected = settings.redis.expected_nodes.map(|count| (count, "--expected-nodes"));
        let (count, source) = saved.or(expected).unwrap_or((NonZeroU32::MIN, "default"));
        Self { count, source }
    }
}

/// Logs the store and the setting that selected it, and warnings about the settings.
pub(super) fn log_start(node: &NodeContext, settings: &Settings, start_nodes: StartNodes) {
    let info = node.store_info();
    let (address, server) = (info.address.as_deref(), info.server());
    info!(store = info.kind, why = info.why, address, server, node = node.node_id(), "starting");
    if node.is_degraded() {
        let StartNodes { count: nodes, source: nodes_from } = start_nodes;
        let overrides = node.limiter().active_policy().overrides().len();
        let error = node.metrics().store().last_error().unwrap_or_default();
        warn!(
            error,
            nodes,
            nodes_from,
            overrides,
            "started without Redis: degraded mode, this node decides by its share of each limit or by on_store_loss \
             until Redis answers; check that Redis is up and reachable"
        );
    }
    for warning in &settings.unprotected {
        warn!(%warning, "unprotected (--allow-unprotected)");
    }
    if node.limiter().active_policy().policy().holds_slots() {
        warn_about_slots(settings);
    }
    if settings.tokens.is_shared() {
        warn!("the admin token is also a check or read token: its holders can change everything");
    }
    if settings.tokens.admin.is_some() && node.overrides().kept_in() == "memory" {
        warn!("overrides are stored in memory only and lost on exit; use --data-dir to keep them");
    }
}

/// Logs the front ends that cannot release the slots of concurrency limits. Forward auth is in use if it trusts a proxy.
fn warn_about_slots(settings: &Settings) {
    if settings.grpc.is_some() {
        warn!(
            "the policy has concurrency limits, and gRPC has no call to release slots: \
             the slots of decisions over gRPC end at their ttl"
        );
    }
    if !settings.forward_auth.proxies.is_empty() {
        warn!(
            "the policy has concurrency limits, and forward auth has no call to release slots: \
             the slots of decisions over forward auth end at their ttl"
        );
    }
}
