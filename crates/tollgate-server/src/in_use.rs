//! The keys in use, page by page: first those of the store that nodes share, then those that this node counts by
//! itself because their rules are not counted there, or only on trial.

use tollgate::policy::Rule;
use tollgate::{
    Cursor, Decision, Distributed, Key, Listing, MemoryStore, Page, Plan, Status, Store, StoreError,
};

use crate::app::App;
use crate::backend::Backend;

/// Begins a cursor among the keys that this node counts. No store gives one that begins so.
const OWN: &str = "node:";

/// Who counts the keys of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedBy {
    /// The store, for every node.
    Store,
    /// This node, beside the store.
    Node,
}

impl Backend {
    /// Who counts by what is decided under a rule, or under limits that came with requests.
    pub(crate) fn deciding(&self, rule: Option<&Rule>) -> CountedBy {
        let distributed = rule.map(Rule::distributed).unwrap_or_default();
        match self.fallback().map(|store| distributed.min(store.at_most())) {
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

    /// A page of the keys in use.
    pub(crate) async fn in_use(&self, listing: &Listing) -> Result<(CountedBy, Page), StoreError> {
        let Some(store) = self.fallback() else {
            return Ok((CountedBy::Store, self.list(listing).await?));
        };
        let begun = listing.cursor().map(Cursor::as_str);
        let own = match begun.map(|cursor| cursor.strip_prefix(OWN)) {
            Some(own) => own,
            // Nothing is counted there, so that its loss is no reason to tell nothing.
            None => (store.at_most() == Distributed::Off).then_some(""),
        };
        match own {
            Some(own) => {
                let page = own_page(store.local(), listing, own)?;
                Ok((CountedBy::Node, page))
            }
            None => {
                let page = self.list(listing).await?;
                let next = page.next.unwrap_or_else(|| Cursor::new(OWN));
                Ok((CountedBy::Store, Page { keys: page.keys, next: Some(next) }))
            }
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

fn own_page(memory: &MemoryStore, listing: &Listing, cursor: &str) -> Result<Page, StoreError> {
    let own = Listing::all().with_prefix(listing.prefix()).with_page_size(listing.page_size());
    let page = memory.list(&match cursor {
        "" => own,
        cursor => own.after(Cursor::new(cursor)),
    })?;
    let next = page.next.map(|next| Cursor::new(format!("{OWN}{}", next.as_str())));
    Ok(Page { keys: page.keys, next })
}
