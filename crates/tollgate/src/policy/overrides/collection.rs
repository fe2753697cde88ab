//! The collection of all overrides of a deployment.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::{Override, applying};
use crate::policy::rule::Rule;
use crate::subject::Subject;
use crate::time::Timestamp;

/// The overrides of one client, at most one per rule, sorted by rule. An override without a rule is first.
pub(super) type ClientOverrides = Arc<[Arc<Override>]>;

/// All overrides, by client and rule. Immutable and cheap to clone.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Override, OverrideLimit, Overrides, Subject};
///
/// let client = Subject::of(["c1"]);
/// let raised = Override::new(vec![OverrideLimit::new(20, Duration::from_secs(60))])?;
/// let both = Overrides::default()
///     .with(&client, raised.clone().for_rule("api"))
///     .with(&client, raised.for_rule("search"));
/// assert_eq!(both.get(&client).len(), 2);
/// assert_eq!(both.without(&client, Some("api")).get(&client)[0].rule.as_deref(), Some("search"));
/// assert!(both.without(&client, None).is_empty());
/// # Ok::<(), tollgate::OverrideError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    by_client: Arc<BTreeMap<Arc<str>, ClientOverrides>>,
}

impl Overrides {
    /// Returns a copy with an override of one client set. It replaces the client's override of the same rule. `client`
    /// is the [`Subject`] of the tenant and the fact `client`.
    #[must_use]
    pub fn with(&self, client: &Subject, new: Override) -> Self {
        let mut overrides = self.get(client).to_vec();
        insert(&mut overrides, new);
        self.changed([(client.clone(), overrides)])
    }

    /// Returns a copy without the overrides of one client: without that of `rule`, or without all of them if `rule` is
    /// `None`.
    #[must_use]
    pub fn without(&self, client: &Subject, rule: Option<&str>) -> Self {
        let is_kept = |stored: &&Arc<Override>| rule.is_some() && stored.rule.as_deref() != rule;
        let rest = self.get(client).iter().filter(is_kept).cloned().collect();
        self.changed([(client.clone(), rest)])
    }

    /// Returns a copy in which these are all overrides of the listed clients. Other clients keep theirs.
    #[must_use]
    pub fn with_clients(
        &self,
        clients: impl IntoIterator<Item = (Subject, Vec<Override>)>,
    ) -> Self {
        self.changed(clients.into_iter().map(|(client, new)| {
            let mut overrides = Vec::with_capacity(new.len());
            new.into_iter().for_each(|new| insert(&mut overrides, new));
            (client, overrides)
        }))
    }

    fn changed(&self, changes: impl IntoIterator<Item = (Subject, Vec<Arc<Override>>)>) -> Self {
        let mut by_client = BTreeMap::clone(&self.by_client);
        for (client, overrides) in changes {
            if overrides.is_empty() {
                by_client.remove(client.as_str());
            } else {
                by_client.insert(client.as_str().into(), overrides.into());
            }
        }
        Self { by_client: Arc::new(by_client) }
    }

    /// Returns a copy without the overrides that are expired at `now`.
    #[must_use]
    pub fn without_expired(&self, now: Timestamp) -> Self {
        let valid = self.by_client.iter().filter_map(|(client, overrides)| {
            if overrides.iter().all(|stored| !stored.is_expired(now)) {
                return Some((Arc::clone(client), Arc::clone(overrides)));
            }
            let valid: ClientOverrides =
                overrides.iter().filter(|stored| !stored.is_expired(now)).cloned().collect();
            (!valid.is_empty()).then(|| (Arc::clone(client), valid))
        });
        Self { by_client: Arc::new(valid.collect()) }
    }

    /// Returns the earliest expiry time of all overrides.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.all().filter_map(|stored| stored.expires_at).min()
    }

    /// Returns the overrides of a client, sorted by rule; empty if it has none.
    #[must_use]
    pub fn get(&self, client: &Subject) -> &[Arc<Override>] {
        self.by_client.get(client.as_str()).map(|overrides| &**overrides).unwrap_or_default()
    }

    /// Returns the override of a client that applies to `rule`.
    ///
    /// ```
    /// use tollgate::{Overrides, Policy, Subject};
    ///
    /// let policy = Policy::builtin();
    /// assert!(Overrides::default().applying(&Subject::of(["c1"]), policy.default_rule()).is_none());
    /// ```
    #[must_use]
    pub fn applying(&self, client: &Subject, rule: &Rule) -> Option<&Arc<Override>> {
        applying(self.get(client), rule)
    }

    /// Returns the clients after the subject text `client` with their overrides, sorted by subject text. An empty text
    /// returns all of them.
    pub fn after(&self, client: &str) -> impl Iterator<Item = (&str, &[Arc<Override>])> {
        let range = (Bound::Excluded(client), Bound::Unbounded);
        self.by_client.range::<str, _>(range).map(|(client, overrides)| (&**client, &**overrides))
    }

    /// Returns the number of overrides.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_client.values().map(|overrides| overrides.len()).sum()
    }

    /// Returns whether there are no overrides.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_client.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &ClientOverrides)> {
        self.by_client.iter()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Override>> {
        self.by_client.values().flat_map(|overrides| overrides.iter())
    }
}

/// Inserts an override at its place, or replaces that of the same rule.
fn insert(overrides: &mut Vec<Arc<Override>>, new: Override) {
    match overrides.binary_search_by(|stored| stored.rule.cmp(&new.rule)) {
        Ok(index) => {
            if let Some(stored) = overrides.get_mut(index) {
                *stored = Arc::new(new);
            }
        }
        Err(index) => overrides.insert(index, Arc::new(new)),
    }
}

impl FromIterator<(Subject, Override)> for Overrides {
    fn from_iter<I: IntoIterator<Item = (Subject, Override)>>(overrides: I) -> Self {
        let mut by_client: BTreeMap<Arc<str>, Vec<Arc<Override>>> = BTreeMap::new();
        for (client, new) in overrides {
            insert(by_client.entry(client.as_str().into()).or_default(), new);
        }
        let by_client = by_client.into_iter().map(|(client, all)| (client, all.into()));
        Self { by_client: Arc::new(by_client.collect()) }
    }
}
