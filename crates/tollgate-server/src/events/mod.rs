//! Events that an operator looks for after an incident: losses of the store, nodes, policies, overrides.

mod event_log;

pub(crate) use event_log::{EventLog, NodeEvent, QueuedEvents, Sharing};

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The breaker opened.
    StoreLost,
    /// The breaker closed.
    StoreBack,
    /// A node started. Departures and silence of nodes are found in Redis.
    NodeJoined,
    PolicyReloaded,
    PolicyRejected,
    OverrideSet,
    OverrideRemoved,
    ClientReset,
}

impl EventKind {
    /// Returns the name in the API.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::StoreLost => "store_lost",
            Self::StoreBack => "store_back",
            Self::NodeJoined => "node_joined",
            Self::PolicyReloaded => "policy_reloaded",
            Self::PolicyRejected => "policy_rejected",
            Self::OverrideSet => "override_set",
            Self::OverrideRemoved => "override_removed",
            Self::ClientReset => "client_reset",
        }
    }
}
