//! Paged listing of keys with stored state: first those of the store, then those that this node counts itself because
//! their rules have `distributed: off` or `shadow`.

use tollgate::policy::{Policy, Rule};
use tollgate::{
    Cursor, Decision, Distributed, Key, ListedKey, Listing, MemoryStore, Page, Plan, Status, Store,
    StoreError, StoreErrorKind, SystemClock,
};

use super::backend::Backend;

/// Prefix of a cursor among the keys that a node counts itself, `node:HASH@ID`. No store returns such a cursor.
const NODE_CURSOR: &str = "node:";

/// Where a key is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedBy {
    /// In the store, for all nodes.
    Store,
    /// In the memory of this node.
    Node,
}

/// The counters to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeySelection {
    /// Counters that decide requests.
    Deciding,
    /// Counters that decide requests, and shadow counters in the store.
    Shown,
    /// All counters, for a reset.
    All,
}

/// The stores to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sources {
    Store,
    Node,
    Both,
}

/// A listing of the keys with stored state under a policy.
#[derive(Debug)]
pub(crate) struct KeyListing<'a> {
    backend: &'a Backend,
    node_id: &'a str,
    policy: &'a Policy,
    selection: KeySelection,
    sources: Sources,
}

/// One page of keys.
#[derive(Debug)]
pub(crate) struct KeyPage {
    pub(crate) counted_by: CountedBy,
    pub(crate) keys: Vec<ListedKey>,
    /// Number of keys read, including those that the selection excludes.
    pub(crate) keys_read: usize,
    pub(crate) next: Option<Cursor>,
}

impl<'a> KeyListing<'a> {
    /// Lists keys of this store. `node_id` is the id of this node, for its cursors.
    pub(crate) fn new(
        (backend, node_id): (&'a Backend, &'a str),
        policy: &'a Policy,
        selection: KeySelection,
    ) -> Self {
        let sources = Sources::new(backend, policy, selection);
        Self { backend, node_id, policy, selection, sources }
    }

    /// Lists all keys that this node counts by itself.
    pub(crate) const fn of_node(
        (backend, node_id): (&'a Backend, &'a str),
        policy: &'a Policy,
    ) -> Self {
        let (selection, sources) = (KeySelection::All, Sources::Node);
        Self { backend, node_id, policy, selection, sources }
    }

    /// Returns the next page.
    pub(crate) async fn page(&self, listing: &Listing) -> Result<KeyPage, StoreError> {
        let (counted_by, Page { mut keys, next }) = match self.node_position(listing)? {
            Some(hash) => (CountedBy::Node, self.node_page(listing, hash)?),
            None => (CountedBy::Store, self.store_page(listing).await?),
        };
        let keys_read = keys.len();
        keys.retain(|listed| self.is_selected(listed, counted_by));
        Ok(KeyPage { counted_by, keys, keys_read, next })
    }

    /// Returns the position among the keys of this node, or `None` while the cursor is in the store.
    fn node_position<'l>(&self, listing: &'l Listing) -> Result<Option<&'l str>, StoreError> {
        let cursor = match (self.sources, listing.cursor()) {
            (Sources::Store, _) | (Sources::Both, None) => return Ok(None),
            (Sources::Node, None) => return Ok(Some("")),
            (Sources::Node | Sources::Both, Some(cursor)) => cursor.as_str(),
        };
        match cursor.strip_prefix(NODE_CURSOR).map(|rest| rest.split_once('@')) {
            None if self.sources == Sources::Both => Ok(None),
            Some(Some((hash, id))) if id == self.node_id => Ok(Some(hash)),
            Some(Some((_, id))) => {
                let reason = format!("belongs to node {id:?}; send it to that node");
                Err(StoreError::new(StoreErrorKind::Cursor, reason))
            }
            _ => {
                let reason = format!("{cursor:?} is not a cursor of this endpoint");
                Err(StoreError::new(StoreErrorKind::Cursor, reason))
            }
        }
    }

    async fn store_page(&self, listing: &Listing) -> Result<Page, StoreError> {
        let Page { keys, next } = self.backend.list(listing).await?;
        let is_only_source = self.sources == Sources::Store;
        Ok(Page { keys, next: next.or_else(|| (!is_only_source).then(|| self.node_cursor(""))) })
    }

    fn node_page(&self, listing: &Listing, hash: &str) -> Result<Page, StoreError> {
        let Some(memory) = self.backend.node_memory(CountedBy::Node) else {
            return Ok(Page::default());
        };
        let first =
            Listing::all().with_prefix(listing.prefix()).with_page_size(listing.page_size());
        let page = memory.list(&match hash {
            "" => first,
            hash => first.after(Cursor::new(hash)),
        })?;
        let next = page.next.map(|next| self.node_cursor(next.as_str()));
        Ok(Page { keys: page.keys, next })
    }

    fn node_cursor(&self, hash: &str) -> Cursor {
        Cursor::new(format!("{NODE_CURSOR}{hash}@{}", self.node_id))
    }

    fn is_selected(&self, listed: &ListedKey, counted_by: CountedBy) -> bool {
        let decides = || self.backend.counted_by(self.policy.rule(&listed.rule)) == counted_by;
        match self.selection {
            KeySelection::Deciding => decides(),
            // For keys that the store decides, this node has a copy at most.
            KeySelection::Shown => counted_by == CountedBy::Store || decides(),
            KeySelection::All => true,
        }
    }
}

impl Sources {
    /// Returns the stores that can contain selected keys. Skipping the others keeps the listing available when the
    /// store is not.
    fn new(backend: &Backend, policy: &Policy, selection: KeySelection) -> Self {
        let Some(store) = backend.fallback() else { return Self::Store };
        let mut rules = policy.rules().iter().chain([policy.default_rule()]);
        match (selection, store.max_distribution()) {
            (KeySelection::All, _) | (KeySelection::Shown, Distributed::Shadow) => Self::Both,
            (KeySelection::Deciding, Distributed::Off | Distributed::Shadow)
            | (KeySelection::Shown, Distributed::Off) => Self::Node,
            _ if rules.any(|rule| rule.distributed() != Distributed::On) => Self::Both,
            _ => Self::Store,
        }
    }
}

impl Backend {
    /// Returns where the deciding counters of a rule are. `None` stands for inline limits.
    pub(crate) fn counted_by(&self, rule: Option<&Rule>) -> CountedBy {
        let distributed = rule.map(Rule::distributed).unwrap_or_default();
        match self.fallback().map(|store| distributed.min(store.max_distribution())) {
            None | Some(Distributed::On) => CountedBy::Store,
            Some(_) => CountedBy::Node,
        }
    }

    /// Returns the status of a key where it is counted.
    pub(crate) async fn stats_in<'a>(
        &self,
        key: &Key<'a>,
        counted_by: CountedBy,
    ) -> Result<Status<'a>, StoreError> {
        match self.node_memory(counted_by) {
            Some(memory) => Ok(memory.stats(key)),
            None => self.stats(key).await,
        }
    }

    /// Peeks at a plan where it is counted.
    pub(crate) async fn peek_in<'a>(
        &self,
        plan: &Plan<'a>,
        counted_by: CountedBy,
    ) -> Result<Decision<'a>, StoreError> {
        match self.node_memory(counted_by) {
            Some(memory) => Ok(memory.peek(plan)),
            None => self.peek(plan).await,
        }
    }

    /// Returns the memory of this node next to Redis, if keys are counted there.
    fn node_memory(&self, counted_by: CountedBy) -> Option<&MemoryStore<SystemClock>> {
        let store = self.fallback().filter(|_| counted_by == CountedBy::Node)?;
        Some(store.local())
    }
}

impl CountedBy {
    /// Returns the id of this node, if the key is counted on this node only.
    pub(crate) fn node(self, node_id: &str) -> Option<String> {
        match self {
            Self::Store => None,
            Self::Node => Some(node_id.to_owned()),
        }
    }
}
