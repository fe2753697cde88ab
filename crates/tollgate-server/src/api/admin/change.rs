//! A change: what was done, to whom, by whom and why. As the audit keeps it, and as the log tells it.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use tollgate::Override;
use tracing::info;

use super::clients::Client;
use crate::access::Fingerprint;
use crate::wire::override_view::OverrideView;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A client's own limits were set.
    SetOverride,
    /// They were removed.
    RemoveOverride,
    /// What a client has used was forgotten.
    Reset,
    /// The policy file was read again.
    Reload,
}

/// Who did it. The name is what they say of themselves; the rest is what we know.
#[derive(Debug, Clone)]
pub(crate) struct Author {
    pub(crate) name: String,
    pub(crate) token: Option<Fingerprint>,
    pub(crate) peer: IpAddr,
}

/// One change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Change {
    /// An [`Action`], or one of a later version.
    pub(crate) action: String,
    pub(crate) client: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) author: String,
    /// The beginning of the token's digest.
    pub(crate) token: Option<String>,
    pub(crate) peer: String,
    pub(crate) node: String,
    pub(crate) reason: String,
    /// What was and what is, where that is not an override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
}

impl Change {
    pub(crate) fn new(action: Action, author: Author, node: &str, reason: String) -> Self {
        Self {
            action: action.as_str().to_owned(),
            client: None,
            tenant: None,
            author: author.name,
            token: author.token.map(|token| token.to_string()),
            peer: author.peer.to_string(),
            node: node.to_owned(),
            reason,
            from: None,
            to: None,
        }
    }

    /// The same, of a client.
    pub(crate) fn of(self, client: &Client) -> Self {
        let tenant = (!client.tenant.is_empty()).then(|| client.tenant.clone());
        Self { client: Some(client.id.clone()), tenant, ..self }
    }

    /// The same, of something that was one thing and is another.
    pub(crate) fn between(self, from: &str, to: &str) -> Self {
        Self { from: Some(from.to_owned()), to: Some(to.to_owned()), ..self }
    }

    /// As it is kept.
    pub(crate) fn to_text(&self) -> String {
        // Strings under fixed names can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// One line of the log, with what was and what is.
    pub(crate) fn log(&self, old: Option<&Override>, new: Option<&Override>) {
        let shown = |own: Option<&Override>, other: &Option<String>| match own {
            Some(own) => serde_json::to_string(&OverrideView::of(own)).unwrap_or_default(),
            None => other.clone().unwrap_or_else(|| "none".to_owned()),
        };
        info!(
            target: "audit",
            action = self.action,
            client = ?self.client.as_deref().unwrap_or_default(),
            tenant = ?self.tenant.as_deref().unwrap_or_default(),
            author = ?self.author,
            token = self.token.as_deref().unwrap_or_default(),
            peer = self.peer,
            reason = ?self.reason,
            old = shown(old, &self.from),
            new = shown(new, &self.to),
            "audit"
        );
    }
}

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Self::SetOverride => "override.set",
            Self::RemoveOverride => "override.remove",
            Self::Reset => "client.reset",
            Self::Reload => "policy.reload",
        }
    }
}
