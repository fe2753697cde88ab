//! Resets the counters of one client: in the store, on this node, and on the others.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tollgate::policy::Policy;
use tollgate::{Key, Limit, Store, Subject};
use tollgate_redis::{Change, Event};
use tracing::warn;

use super::clients::{Counters, Keyed, is_keyed_by_client};
use crate::error::{ApiError, ApiErrorKind};
use crate::node::NodeContext;
use crate::node::overrides::Client;
use crate::store::{KeyListing, KeySelection};

/// Maximum time to search the store for counters of a client.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);

/// The rules whose counters a reset covers.
#[derive(Debug)]
pub(super) enum CounterRules {
    /// All rules, and inline limits.
    All,
    /// The rules with these names.
    Named(Vec<String>),
}

impl CounterRules {
    fn of_names(names: Option<Vec<String>>) -> Self {
        names.map_or(Self::All, Self::Named)
    }

    fn names(&self) -> Option<Vec<String>> {
        match self {
            Self::All => None,
            Self::Named(rules) => Some(rules.clone()),
        }
    }

    fn contains(&self, limit: &Limit) -> bool {
        match self {
            Self::All => true,
            Self::Named(rules) => rules.iter().any(|rule| rule == limit.rule()),
        }
    }

    /// Returns whether some of the counters have unknown keys: those of rules keyed by more facts, and inline limits.
    fn need_search(&self, policy: &Policy) -> bool {
        let Self::Named(rules) = self else { return true };
        rules.iter().filter_map(|name| policy.rule(name)).any(|rule| !is_keyed_by_client(rule))
    }
}

/// The counters that a reset sets to zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Those in the store, and what this node counts by itself.
    Everywhere,
    /// What this node counts by itself.
    Node,
}

/// Resets the counters of a client in these rules, on all nodes.
pub(super) async fn reset(
    context: &NodeContext,
    client: &Client,
    rules: &CounterRules,
) -> Result<(), ApiError> {
    let is_complete = reset_in(context, client, rules, Scope::Everywhere).await?;
    // Only if the store was reset: otherwise the caller retries.
    let announced = announce(context, client, rules).await;
    if !is_complete {
        let detail = "the search for counters of this client timed out; the counters found so far are reset, \
                      retry to reset the others";
        return Err(ApiError::new(ApiErrorKind::Unavailable, detail));
    }
    announced
}

/// Resets counters of a client. Returns whether all were found before the search timed out.
async fn reset_in(
    context: &NodeContext,
    client: &Client,
    rules: &CounterRules,
    scope: Scope,
) -> Result<bool, ApiError> {
    let active = context.limiter().active_policy();
    let mut found = Counters::keyed_by_client(&active, client);
    found.all.retain(|(_, limit)| rules.contains(limit));
    // These need no search, so a caller that gives up early has most of the effect.
    reset_all(context, &found.all, scope).await?;
    if !rules.need_search(active.policy()) {
        return Ok(true);
    }
    let already_reset = found.all.len();
    let store = (context.backend(), context.node_id());
    let listing = match scope {
        Scope::Everywhere => KeyListing::new(store, active.policy(), KeySelection::All),
        Scope::Node => KeyListing::of_node(store, active.policy()),
    };
    let keyed = (client, Keyed::ByClient);
    found.search(&listing, &active, keyed, SEARCH_TIMEOUT).await?;
    let mut others = found.all.split_off(already_reset);
    others.retain(|(_, limit)| rules.contains(limit));
    reset_all(context, &others, scope).await?;
    Ok(found.is_complete)
}

async fn reset_all(
    context: &NodeContext,
    counters: &[(Subject, Limit)],
    scope: Scope,
) -> Result<(), ApiError> {
    for (subject, limit) in counters {
        let key = Key::new(subject, limit);
        let reset = match (scope, context.backend().fallback()) {
            (Scope::Everywhere, _) => context.backend().reset(&key).await,
            (Scope::Node, Some(store)) => store.reset_on_node(&key).await,
            (Scope::Node, None) => Ok(()),
        };
        reset.map_err(|error| ApiError::from(&error))?;
    }
    Ok(())
}

/// Lets the other nodes reset what they count by themselves.
async fn announce(
    context: &NodeContext,
    client: &Client,
    rules: &CounterRules,
) -> Result<(), ApiError> {
    let Some(store) = context.backend().redis() else { return Ok(()) };
    let change = Change::ClientReset {
        client: client.subject().to_string(),
        rules: rules.names(),
        node: context.node_id().to_owned(),
    };
    store.directory().announce(&change).await.map_err(|error| {
        let detail = format!("the counters are reset, but other nodes were not notified: {error}");
        ApiError::new(ApiErrorKind::Unavailable, detail)
    })
}

/// Resets what this node counts by itself whenever another node has reset a client. A node that is not subscribed at that
/// time keeps its counters.
pub(crate) fn follow_resets(node: &Arc<NodeContext>) {
    let Some(store) = node.backend().redis() else { return };
    let (runtime, node) = (Handle::current(), Arc::downgrade(node));
    store.directory().watch(move |event| {
        if let Event::Changed(Change::ClientReset { client, rules, node: from }) = event {
            runtime.spawn(reset_node(Weak::clone(&node), client, rules, from));
        }
    });
}

async fn reset_node(
    node: Weak<NodeContext>,
    client: String,
    rules: Option<Vec<String>>,
    from: String,
) {
    let Some(node) = node.upgrade().filter(|node| node.node_id() != from) else { return };
    let Some(client) = Client::from_text(&client) else { return };
    let rules = CounterRules::of_names(rules);
    if let Err(error) = reset_in(&node, &client, &rules, Scope::Node).await {
        warn!(%error, from, "cannot reset the counters that this node has of a client");
    }
}
