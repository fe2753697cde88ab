//! Current status of a node, published for the other nodes.

use serde::{Deserialize, Serialize};

use super::refused_keys::RefusedKey;
use crate::node::NodeContext;

/// Maximum length of a published warning, in characters.
const MAX_WARNING_CHARS: usize = 500;

/// Status of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeStatus {
    pub(crate) version: String,
    pub(crate) policy: String,
    /// State of the circuit breaker; `None` with the memory store.
    pub(crate) breaker: Option<String>,
    pub(crate) warning: Option<String>,
    /// Start of the loss of the store, in milliseconds since the Unix epoch.
    #[serde(default)]
    pub(crate) lost_since: Option<u64>,
    /// Leases that the node holds; `None` with the memory store.
    #[serde(default)]
    pub(crate) leases: Option<u64>,
    /// The keys refused most often in the last minutes.
    #[serde(default)]
    pub(crate) refused: Vec<RefusedKey>,
}

impl NodeStatus {
    /// Returns the status of this node.
    pub(crate) fn of(context: &NodeContext) -> Self {
        let breaker = context.backend().fallback().map(|store| store.breaker().as_str().to_owned());
        let warning = context.warning().map(|text| text.chars().take(MAX_WARNING_CHARS).collect());
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: context.limiter().active_policy().policy().version().to_owned(),
            breaker,
            warning,
            lost_since: context.metrics().store().loss().map(|loss| loss.since.as_micros() / 1000),
            leases: context.backend().lease_stats().map(|leases| leases.held),
            refused: context.refused().top(),
        }
    }
}
