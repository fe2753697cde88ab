//! The collection of all overrides of a deployment.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::Override;
use crate::subject::Subject;
use crate::time::Timestamp;

/// All overrides, by client. Immutable and cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    by_client: Arc<BTreeMap<Arc<str>, Arc<Override>>>,
}

impl Overrides {
    /// Returns a copy with the override of one client set, or removed if `change` is `None`. `client` is the
    /// [`Subject`] of the tenant and the fact `client`.
    #[must_use]
    pub fn with(&self, client: &Subject, change: Option<Override>) -> Self {
        self.with_all([(client.clone(), change)])
    }

    /// Returns a copy with several overrides set or removed; see [`with`](Self::with).
    #[must_use]
    pub fn with_all(&self, changes: impl IntoIterator<Item = (Subject, Option<Override>)>) -> Self {
        let mut by_client = BTreeMap::clone(&self.by_client);
        for (client, change) in changes {
            match change {
                Some(new) => by_client.insert(client.as_str().into(), Arc::new(new)),
                None => by_client.remove(client.as_str()),
            };
        }
        Self { by_client: Arc::new(by_client) }
    }

    /// Returns a copy without the overrides that are expired at `now`.
    #[must_use]
    pub fn without_expired(&self, now: Timestamp) -> Self {
        let valid = self.by_client.iter().filter(|(_, entry)| !entry.is_expired(now));
        let valid = valid.map(|(client, entry)| (Arc::clone(client), Arc::clone(entry)));
        Self { by_client: Arc::new(valid.collect()) }
    }

    /// Returns the earliest expiry time of all overrides.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.by_client.values().filter_map(|entry| entry.expires_at).min()
    }

    /// Returns the override of a client.
    #[must_use]
    pub fn get(&self, client: &Subject) -> Option<&Arc<Override>> {
        self.by_client.get(client.as_str())
    }

    /// Returns the overrides after the subject text `client`, sorted by subject text. An empty text returns
    /// all of them.
    pub fn after(&self, client: &str) -> impl Iterator<Item = (&str, &Arc<Override>)> {
        let range = (Bound::Excluded(client), Bound::Unbounded);
        self.by_client.range::<str, _>(range).map(|(client, entry)| (&**client, entry))
    }

    /// Returns the number of overrides.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_client.len()
    }

    /// Returns whether there are no overrides.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_client.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Override>)> {
        self.by_client.iter()
    }
}

impl FromIterator<(Subject, Override)> for Overrides {
    fn from_iter<I: IntoIterator<Item = (Subject, Override)>>(overrides: I) -> Self {
        let entries = overrides.into_iter();
        let entries = entries.map(|(client, entry)| (client.as_str().into(), Arc::new(entry)));
        Self { by_client: Arc::new(entries.collect()) }
    }
}
