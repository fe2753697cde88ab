//! All overrides of a deployment.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::Override;
use crate::subject::Subject;
use crate::time::Timestamp;

/// The overrides there are, by whom they are for. A copy costs little, and never changes.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    by_client: Arc<BTreeMap<Arc<str>, Arc<Override>>>,
}

impl Overrides {
    /// These and one more, or without one: `client` is the [`Subject`] of a tenant and a client.
    #[must_use]
    pub fn with(&self, client: &Subject, own: Option<Override>) -> Self {
        self.with_all([(client.clone(), own)])
    }

    /// The same with several changes, made together.
    #[must_use]
    pub fn with_all(&self, changes: impl IntoIterator<Item = (Subject, Option<Override>)>) -> Self {
        let mut by_client = BTreeMap::clone(&self.by_client);
        for (client, own) in changes {
            match own {
                Some(own) => by_client.insert(client.as_str().into(), Arc::new(own)),
                None => by_client.remove(client.as_str()),
            };
        }
        Self { by_client: Arc::new(by_client) }
    }

    /// Those that have not ended.
    #[must_use]
    pub fn without_expired(&self, now: Timestamp) -> Self {
        let lasting = self.by_client.iter().filter(|(_, own)| !own.is_expired(now));
        Self {
            by_client: Arc::new(
                lasting.map(|(key, own)| (Arc::clone(key), Arc::clone(own))).collect(),
            ),
        }
    }

    /// When the next of them ends.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.by_client.values().filter_map(|own| own.expires_at).min()
    }

    /// The client's.
    #[must_use]
    pub fn get(&self, client: &Subject) -> Option<&Arc<Override>> {
        self.by_client.get(client.as_str())
    }

    /// All of them in the order of their subjects' texts, from the one after this text.
    pub fn after(&self, text: &str) -> impl Iterator<Item = (&str, &Arc<Override>)> {
        let range = (Bound::Excluded(text), Bound::Unbounded);
        self.by_client.range::<str, _>(range).map(|(client, own)| (&**client, own))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_client.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_client.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Override>)> {
        self.by_client.iter()
    }
}

impl FromIterator<(Subject, Override)> for Overrides {
    fn from_iter<I: IntoIterator<Item = (Subject, Override)>>(all: I) -> Self {
        let all = all.into_iter().map(|(client, own)| (client.as_str().into(), Arc::new(own)));
        Self { by_client: Arc::new(all.collect()) }
    }
}
