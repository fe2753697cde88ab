//! What an operator should look at, as this node finds it while it serves.

use tracing::{info, warn};

/// What is found with the heartbeats.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    heartbeat: Option<String>,
    duplicate: Option<String>,
    eviction: Option<String>,
    overrides: Option<String>,
}

impl Warnings {
    /// Remembers how the last heartbeat went.
    pub(crate) fn set_heartbeat(&mut self, error: Option<String>) {
        self.heartbeat = error;
    }

    /// Remembers another node that goes by this one's id, if there is one, and logs that where it changes.
    pub(crate) fn set_duplicate_node(&mut self, warning: Option<String>) {
        if warning != self.duplicate {
            match &warning {
                Some(warning) => warn!(%warning, "node"),
                None => info!("node: no other goes by the same id any more"),
            }
        }
        self.duplicate = warning;
    }

    /// Remembers by which policy Redis evicts keys, if it does, and logs that where it changes.
    pub(crate) fn set_eviction(&mut self, policy: Option<&str>) {
        let warning = policy.map(evicting);
        if warning != self.eviction {
            match &warning {
                Some(warning) => warn!(%warning, "store"),
                // It evicts no more, or does not tell.
                None => info!("store: no longer says that it evicts keys"),
            }
        }
        self.eviction = warning;
    }

    /// Remembers why overrides may be others than are stored, and logs that where it begins and ends.
    pub(crate) fn set_overrides(&mut self, trouble: Option<String>) {
        match (&self.overrides, &trouble) {
            (None, Some(warning)) => warn!(%warning, "overrides"),
            (Some(_), None) => info!("overrides are again those that are stored"),
            _ => {}
        }
        self.overrides = trouble;
    }

    /// All of them, after that the store fails: heartbeats that fail say no more than that.
    pub(crate) fn all(&self, failure: Option<String>) -> impl Iterator<Item = String> {
        let failure = failure.or_else(|| self.heartbeat.clone());
        let others = [&self.duplicate, &self.eviction, &self.overrides];
        [failure].into_iter().chain(others.map(Clone::clone)).flatten()
    }
}

fn evicting(policy: &str) -> String {
    format!(
        "Redis evicts keys when its memory is full ({policy}), and with them what was used of a limit; set \
         maxmemory-policy to noeviction"
    )
}
