//! One admin change: action, client, author and reason, as stored in the audit log and written to the server log.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use tollgate::Override;
use tracing::info;

use super::client::Client;
use crate::access::Fingerprint;
use crate::wire::override_body::Freshness;
use crate::wire::override_view::OverrideView;

/// The action of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// An override was set.
    SetOverride,
    /// An override was removed.
    RemoveOverride,
    /// The counters of a client were reset.
    Reset,
    /// The policy file was reloaded.
    Reload,
}

/// The author of a change. The name is chosen by the caller; token and peer are verified.
#[derive(Debug, Clone)]
pub(crate) struct Author {
    pub(crate) name: String,
    pub(crate) token: Option<Fingerprint>,
    pub(crate) peer: IpAddr,
}

/// One change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Change {
    /// The name of an [`Action`], possibly one of a newer version.
    #[cfg_attr(test, schemars(with = "crate::reference_tests::names::Action"))]
    pub(crate) action: String,
    pub(crate) client: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) author: String,
    /// The first 8 hex digits of the digest of the token.
    pub(crate) token: Option<String>,
    pub(crate) peer: String,
    pub(crate) node: String,
    pub(crate) reason: String,
    /// Whether setting the override also reset the counters of its rule.
    #[serde(default, skip_serializing_if = "Freshness::is_kept")]
    #[cfg_attr(test, schemars(with = "bool"))]
    pub(crate) fresh: Freshness,
    /// The old value, if it is not an override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(skip))]
    pub(crate) from: Option<String>,
    /// The new value, if it is not an override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(skip))]
    pub(crate) to: Option<String>,
}

/// A change to the overrides of a client.
#[derive(Debug, Clone)]
pub(crate) enum OverrideEdit {
    /// Sets these overrides; each replaces that of the same rule.
    Set(Vec<Override>),
    /// Removes the override of this rule, or all overrides of the client.
    Remove { rule: Option<String> },
}

/// One override before and after a change.
#[derive(Debug)]
pub(crate) struct ChangedOverride {
    pub(crate) old: Option<Override>,
    pub(crate) new: Option<Override>,
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
            fresh: Freshness::KeepUsage,
            from: None,
            to: None,
        }
    }

    /// Returns whether the change is this action.
    pub(super) fn is(&self, action: Action) -> bool {
        self.action == action.as_str()
    }

    /// Sets the client.
    pub(crate) fn of(self, client: &Client) -> Self {
        let tenant = (!client.tenant.is_empty()).then(|| client.tenant.clone());
        Self { client: Some(client.id.clone()), tenant, ..self }
    }

    /// Sets whether the change also resets counters.
    pub(crate) fn with(self, fresh: Freshness) -> Self {
        Self { fresh, ..self }
    }

    /// Sets the old and new values.
    pub(crate) fn between(self, from: &str, to: &str) -> Self {
        Self { from: Some(from.to_owned()), to: Some(to.to_owned()), ..self }
    }

    /// Returns the text for the audit log.
    pub(crate) fn to_text(&self) -> String {
        // A struct of strings always serializes.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Writes the change to the server log, with the old and new values.
    pub(crate) fn log(&self, old: Option<&Override>, new: Option<&Override>) {
        let json = |override_: Option<&Override>, text: &Option<String>| match override_ {
            Some(override_) => {
                serde_json::to_string(&OverrideView::new(override_)).unwrap_or_default()
            }
            None => text.clone().unwrap_or_else(|| "none".to_owned()),
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
            fresh = bool::from(self.fresh),
            old = json(old, &self.from),
            new = json(new, &self.to),
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
