//! Overrides as a person reads them.

use serde::Deserialize;

/// An override as a person reads it.
#[derive(Debug, Deserialize)]
pub(super) struct Shown {
    client: String,
    tenant: String,
    limits: Vec<ShownLimit>,
    reason: String,
    author: String,
    expires_at: Option<String>,
    applies_to: Vec<String>,
    problem: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ShownLimit {
    limit: u64,
    window_ms: Option<u64>,
}

/// A page of them.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    pub(super) overrides: Vec<Shown>,
    pub(super) cursor: Option<String>,
}

impl Shown {
    /// In a line.
    pub(super) fn line(&self) -> String {
        let limit = |limit: &ShownLimit| match limit.window_ms {
            Some(window) => format!("{} per {window} ms", limit.limit),
            None => format!("{} at once", limit.limit),
        };
        let limits = self.limits.iter().map(limit).collect::<Vec<_>>().join(", ");
        let mut line = format!("{:?}: {limits}", self.client);
        let mut add = |name: &str, text: &str| {
            if !text.is_empty() {
                line.push_str(&format!("; {name} {text}"));
            }
        };
        // What people write may hold anything, and terminals obey.
        let quoted = |text: &str| if text.is_empty() { String::new() } else { format!("{text:?}") };
        add("in tenant", &quoted(&self.tenant));
        add("in", &self.applies_to.join(", "));
        add("until", self.expires_at.as_deref().unwrap_or_default());
        add("by", &quoted(&self.author));
        add("because", &quoted(&self.reason));
        add("but", &quoted(self.problem.as_deref().unwrap_or_default()));
        line
    }
}
