//! Warnings for operators: conditions that this node detects while it runs.

use tracing::{info, warn};

/// Current warnings, updated with each node report. They are part of the store's `warning` in `/api/status`.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    node_report: Option<String>,
    duplicate: Option<String>,
    eviction: Option<String>,
    overrides: Option<String>,
}

impl Warnings {
    /// Sets the error of the last node report; `None` if it succeeded.
    pub(crate) fn set_node_report(&mut self, error: Option<String>) {
        self.node_report = error;
    }

    /// Sets or clears the warning about another node with the same id, and logs changes.
    pub(crate) fn set_duplicate_node(&mut self, warning: Option<String>) {
        if warning != self.duplicate {
            match &warning {
                Some(warning) => warn!(%warning, "duplicate node id"),
                None => info!("duplicate node id resolved: no other node uses this node's id"),
            }
        }
        self.duplicate = warning;
    }

    /// Sets or clears the warning about key eviction by Redis, and logs changes.
    pub(crate) fn set_eviction(&mut self, policy: Option<&str>) {
        let warning = policy.map(eviction_warning);
        if warning != self.eviction {
            match &warning {
                Some(warning) => warn!(%warning, "limits may be lost"),
                // Eviction is off, or Redis no longer reports its setting.
                None => info!("Redis no longer evicts keys, or no longer reports that it does"),
            }
        }
        self.eviction = warning;
    }

    /// Sets or clears the warning about overrides that cannot be read, and logs when it starts and ends.
    pub(crate) fn set_overrides(&mut self, error: Option<String>) {
        match (&self.overrides, &error) {
            (None, Some(error)) => {
                warn!(%error, "overrides may be outdated on this node; changes are not applied until this is fixed");
            }
            (Some(_), None) => info!("overrides are up to date again"),
            _ => {}
        }
        self.overrides = error;
    }

    /// Returns all warnings, `store_failure` first. It replaces the node report warning, which has the same cause.
    pub(crate) fn all(&self, store_failure: Option<String>) -> impl Iterator<Item = String> {
        let failure = store_failure.or_else(|| self.node_report.clone());
        let others = [&self.duplicate, &self.eviction, &self.overrides];
        [failure].into_iter().chain(others.map(Clone::clone)).flatten()
    }
}

fn eviction_warning(policy: &str) -> String {
    format!(
        "Redis evicts keys when its memory is full ({policy}), which resets limits; set maxmemory-policy to noeviction"
    )
}
