//! The keys in use, page by page: first those of the store that nodes share, then those that this node counts by
//! itself because their rules are not counted there, or only on trial.

use tollgate::policy::{Policy, Rule};
use tollgate::{
    Cursor, Decision, Distributed, Key, ListedKey, Listing, MemoryStore, Page, Plan, Status, Store,
    StoreError, StoreErrorKind,
};

use crate::app::App;
use crate::backend::Backend;

/// Begins a cursor among the keys that a node counts, `node:HASH@ID`. No store gives one that begins so.
const OWN: &str = "node:";

/// Who counts a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedBy {
    /// The store, for every node.
    Store,
    /// This node, beside the store.
    Node,
}

/// Which counters are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sought {
    /// Those that decide.
    Deciding,
    /// Those and what the store counts on trial.
    Shown,
    /// All that can be forgotten.
    All,
}

/// Where they are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    Store,
    Node,
    Both,
}

/// The keys in use under a policy.
#[derive(Debug)]
pub(crate) struct InUse<'a> {
    app: &'a App,
    policy: &'a Policy,
    sought: Sought,
    places: Places,
}

/// Some of them.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) counted_by: CountedBy,
    pub(crate) keys: Vec<ListedKey>,
    /// How many there were before those that are not sought were left out.
    pub(crate) looked_at: usize,
    pub(crate) next: Option<Cursor>,
}

impl<'a> InUse<'a> {
    pub(crate) fn new(app: &'a App, policy: &'a Policy, sought: Sought) -> Self {
        let places = Places::of(app.backend(), policy, sought);
        Self { app, policy, sought, places }
    }

    /// A page of them.
    pub(crate) async fn page(&self, listing: &Listing) -> Result<Found, StoreError> {
        let (counted_by, Page { mut keys, next }) = match self.place_in_node(listing)? {
            Some(hash) => (CountedBy::Node, self.of_node(listing, hash)?),
            None => (CountedBy::Store, self.of_store(listing).await?),
        };
        let looked_at = keys.len();
        keys.retain(|listed| self.is_sought(listed, counted_by));
        Ok(Found { counted_by, keys, looked_at, next })
    }

    /// Where to go on among this node's keys; none while it is the store's turn.
    fn place_in_node<'l>(&self, listing: &'l Listing) -> Result<Option<&'l str>, StoreError> {
        let cursor = match (self.places, listing.cursor()) {
            (Places::Store, _) | (Places::Both, None) => return Ok(None),
            (Places::Node, None) => return Ok(Some("")),
            (Places::Node | Places::Both, Some(cursor)) => cursor.as_str(),
        };
        match cursor.strip_prefix(OWN).map(|own| own.split_once('@')) {
            None if self.places == Places::Both => Ok(None),
            Some(Some((hash, id))) if id == self.app.node().id => Ok(Some(hash)),
            Some(Some((_, id))) => {
                let why = format!("what follows is counted by the node {id:?}: ask that one");
                Err(StoreError::new(StoreErrorKind::Cursor, why))
            }
            _ => {
                let why = format!("cursor {cursor:?} is not one that this service gave");
                Err(StoreError::new(StoreErrorKind::Cursor, why))
            }
        }
    }

    async fn of_store(&self, listing: &Listing) -> Result<Page, StoreError> {
        let Page { keys, next } = self.app.backend().list(listing).await?;
        let is_all = self.places == Places::Store;
        Ok(Page { keys, next: next.or_else(|| (!is_all).then(|| self.own_cursor(""))) })
    }

    fn of_node(&self, listing: &Listing, hash: &str) -> Result<Page, StoreError> {
        let Some(memory) = self.app.backend().own(CountedBy::Node) else {
            return Ok(Page::default());
        };
        let own = Listing::all().with_prefix(listing.prefix()).with_page_size(listing.page_size());
        let page = memory.list(&match hash {
            "" => own,
            hash => own.after(Cursor::new(hash)),
        })?;
        let next = page.next.map(|next| self.own_cursor(next.as_str()));
        Ok(Page { keys: page.keys, next })
    }

    fn own_cursor(&self, hash: &str) -> Cursor {
        Cursor::new(format!("{OWN}{hash}@{}", self.app.node().id))
    }

    fn is_sought(&self, listed: &ListedKey, counted_by: CountedBy) -> bool {
        let decides = || self.app.backend().deciding(self.policy.rule(&listed.rule)) == counted_by;
        match self.sought {
            Sought::Deciding => decides(),
            // Of what the store decides, this node has a copy at most.
            Sought::Shown => counted_by == CountedBy::Store || decides(),
            Sought::All => true,
        }
    }
}

impl Places {
    /// A store in which nothing is sought is not asked: its loss is no reason to tell nothing.
    fn of(backend: &Backend, policy: &Policy, sought: Sought) -> Self {
        let Some(store) = backend.fallback() else { return Self::Store };
        let mut rules = policy.rules().iter().chain([policy.default_rule()]);
        match (sought, store.max_distribution()) {
            (Sought::All, _) | (Sought::Shown, Distributed::Shadow) => Self::Both,
            (Sought::Deciding, Distributed::Off | Distributed::Shadow)
            | (Sought::Shown, Distributed::Off) => Self::Node,
            _ if rules.any(|rule| rule.distributed() != Distributed::On) => Self::Both,
            _ => Self::Store,
        }
    }
}

impl Backend {
    /// Who counts by what is decided under a rule, or under limits that came with requests.
    pub(crate) fn deciding(&self, rule: Option<&Rule>) -> CountedBy {
        let distributed = rule.map(Rule::distributed).unwrap_or_default();
        match self.fallback().map(|store| distributed.min(store.max_distribution())) {
            None | Some(Distributed::On) => CountedBy::Store,
            Some(_) => CountedBy::Node,
        }
    }

    /// What has been used of a limit, as it is counted there.
    pub(crate) async fn used<'a>(
        &self,
        key: &Key<'a>,
        counted_by: CountedBy,
    ) -> Result<Status<'a>, StoreError> {
        match self.own(counted_by) {
            Some(memory) => Ok(memory.stats(key)),
            None => self.stats(key).await,
        }
    }

    /// What a plan would be told, as it is counted there.
    pub(crate) async fn foreseen<'a>(
        &self,
        plan: &Plan<'a>,
        counted_by: CountedBy,
    ) -> Result<Decision<'a>, StoreError> {
        match self.own(counted_by) {
            Some(memory) => Ok(memory.peek(plan)),
            None => self.peek(plan).await,
        }
    }

    /// The memory beside a store that is shared, if that is where it is counted.
    fn own(&self, counted_by: CountedBy) -> Option<&MemoryStore> {
        let store = self.fallback().filter(|_| counted_by == CountedBy::Node)?;
        Some(store.local())
    }
}

impl CountedBy {
    /// The node, if it is only one that counts.
    pub(crate) fn node(self, app: &App) -> Option<String> {
        match self {
            Self::Store => None,
            Self::Node => Some(app.node().id.clone()),
        }
    }
}
