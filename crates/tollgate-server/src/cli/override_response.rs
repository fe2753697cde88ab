//! Overrides as text for people.

use std::time::Duration;

use serde::Deserialize;
use tollgate::RateText;

/// One override in a response of the admin API.
#[derive(Debug, Deserialize)]
pub(super) struct OverrideReply {
    client: String,
    tenant: String,
    limits: Vec<OverrideLimit>,
    only: bool,
    reason: String,
    author: String,
    expires_at: Option<String>,
    applies_to: Vec<String>,
    problem: Option<String>,
}

#[derive(Debug, Deserialize)]
struct OverrideLimit {
    limit: u64,
    window_ms: Option<u64>,
    /// None if the entry inherits the unit of the limit that it replaces.
    unit: Option<String>,
}

/// All overrides of one client.
#[derive(Debug, Deserialize)]
pub(super) struct ClientReply {
    pub(super) overrides: Vec<OverrideReply>,
}

/// One page of the override list.
#[derive(Debug, Deserialize)]
pub(super) struct OverridePage {
    pub(super) overrides: Vec<OverrideReply>,
    pub(super) cursor: Option<String>,
}

impl OverrideReply {
    /// Returns the override in one line.
    pub(super) fn line(&self) -> String {
        let limit = |limit: &OverrideLimit| {
            let window = limit.window_ms.map(Duration::from_millis);
            let unit = limit.unit.as_deref().unwrap_or("requests");
            RateText { count: limit.limit, window, unit }.to_string()
        };
        let limits = self.limits.iter().map(limit).collect::<Vec<_>>().join(", ");
        let mut line = format!("{:?}: {limits}", self.client);
        let mut add = |name: &str, text: &str| {
            if !text.is_empty() {
                line.push_str(&format!("; {name} {text}"));
            }
        };
        // Free text may contain terminal escapes, so it is quoted.
        let quoted = |text: &str| if text.is_empty() { String::new() } else { format!("{text:?}") };
        add("tenant", &quoted(&self.tenant));
        add("rules", &self.applies_to.join(", "));
        add("other limits", if self.only { "removed" } else { "" });
        add("until", self.expires_at.as_deref().unwrap_or_default());
        add("author", &quoted(&self.author));
        add("reason", &quoted(&self.reason));
        add("warning", &quoted(self.problem.as_deref().unwrap_or_default()));
        line
    }
}
