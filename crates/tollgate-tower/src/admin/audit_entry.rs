//! Audit entries: who changed what and why, in the format of the Tollgate server.

use std::net::IpAddr;

use serde_json::json;
use tollgate::ClientId;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    SetOverride,
    /// Sets an override and resets the counters of its rule.
    SetFreshOverride,
    RemoveOverride,
    ResetClient,
}

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Self::SetOverride | Self::SetFreshOverride => "override.set",
            Self::RemoveOverride => "override.remove",
            Self::ResetClient => "client.reset",
        }
    }
}

/// The author of a change. The name is what the caller states; token and peer are known.
#[derive(Debug, Clone)]
pub(super) struct Author {
    pub(super) name: String,
    pub(super) reason: String,
    pub(super) token: String,
    pub(super) peer: Option<IpAddr>,
    pub(super) node: String,
}

/// Returns the entry as one line of JSON.
pub(super) fn audit_entry(action: Action, client: &ClientId, author: &Author) -> String {
    let mut entry = json!({
        "action": action.as_str(),
        "client": client.id(),
        "tenant": Some(client.tenant()).filter(|tenant| !tenant.is_empty()),
        "author": author.name,
        "token": author.token,
        "peer": author.peer.map(|peer| peer.to_string()).unwrap_or_default(),
        "node": author.node,
        "reason": author.reason,
    });
    if let (Action::SetFreshOverride, Some(entry)) = (action, entry.as_object_mut()) {
        entry.insert("fresh".to_owned(), true.into());
    }
    entry.to_string()
}
