//! Scanning the stored keys for one page of a listing.

use tollgate::policy::Policy;
use tollgate::{ActivePolicy, Cursor, Limit, ListedKey, Listing, Subject};

use crate::error::ApiError;
use crate::node::NodeContext;
use crate::store::{KeyListing, KeyPage, KeySelection};

/// Maximum number of keys read for one page. A page may be empty and still have a cursor.
const MAX_KEYS: usize = 10_000;
/// Maximum number of store calls for one page.
const MAX_STEPS: usize = 200;

/// The query parameters of a listing.
#[derive(Debug, Clone)]
pub(crate) struct PageRequest {
    pub(crate) tenant: Option<String>,
    pub(crate) prefix: String,
    pub(crate) page_size: usize,
    pub(crate) cursor: Option<String>,
}

/// A stored key that matches the request, with its limit, subject and tenant.
#[derive(Debug)]
pub(super) struct FoundKey<'a> {
    pub(super) listed: &'a ListedKey,
    pub(super) limit: Limit,
    pub(super) subject: Subject,
    pub(super) tenant: String,
}

/// A scan that collects the keys of one page.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    keys: KeyListing<'a>,
    page_size: usize,
    /// The next store call; `None` after the last key.
    listing: Option<Listing>,
    keys_read: usize,
    steps: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn begin(
        context: &'a NodeContext,
        policy: &'a Policy,
        selection: KeySelection,
        request: &PageRequest,
    ) -> Self {
        let keys = KeyListing::new((context.backend(), context.node_id()), policy, selection);
        let listing = Some(request.listing(policy));
        Self { keys, page_size: request.page_size, listing, keys_read: 0, steps: 0 }
    }

    /// Returns the next keys, or `None` if the page is complete. `collected` is the number of items on the page so far.
    pub(super) async fn step(&mut self, collected: usize) -> Result<Option<KeyPage>, ApiError> {
        let is_complete =
            collected > self.page_size / 2 || self.keys_read >= MAX_KEYS || self.steps == MAX_STEPS;
        let Some(listing) = self.listing.take_if(|_| !is_complete) else { return Ok(None) };
        // Requests only the number of missing items. Redis may return more, and all of them are shown, so a page that
        // is more than half full counts as complete.
        let listing = listing.with_page_size(self.page_size - collected);
        let page = self.keys.page(&listing).await;
        let mut page = page.map_err(|error| ApiError::from(&error))?;
        self.listing = page.next.take().map(|next| listing.after(next));
        self.keys_read += page.keys_read;
        self.steps += 1;
        Ok(Some(page))
    }

    /// Returns the cursor of the next page.
    pub(super) fn cursor(self) -> Option<String> {
        self.listing?.cursor().map(|cursor| cursor.as_str().to_owned())
    }
}

impl PageRequest {
    /// Returns a listing that contains all matching keys. A displayed key joins facts with `:`, and a fact may contain
    /// `:` itself, so the store filters by the part before the first `:` only.
    fn listing(&self, policy: &Policy) -> Listing {
        let start = self.prefix.split(':').next().unwrap_or_default();
        // `%` and `*` occur in displayed keys with another meaning than in stored ones.
        let is_as_stored = !start.is_empty() && !start.contains(['%', '*']);
        let subject = match self.tenant(policy) {
            None => None,
            Some(tenant) if is_as_stored => Some(Subject::in_tenant(tenant, [start])),
            Some(tenant) => Some(Subject::in_tenant(tenant, [""; 0])),
        };
        let prefix = subject.map(|subject| subject.as_str().to_owned()).unwrap_or_default();
        let listing = Listing::all().with_prefix(prefix);
        match &self.cursor {
            Some(cursor) => listing.after(Cursor::new(cursor.clone())),
            None => listing,
        }
    }

    /// Returns the tenant to search. With only a prefix, this is the empty tenant, unless the policy sets one: then all
    /// tenants are searched, because inline limits do not use the tenant of the policy.
    fn tenant<'a>(&'a self, policy: &'a Policy) -> Option<&'a str> {
        match &self.tenant {
            Some(tenant) => Some(tenant),
            None if self.prefix.is_empty() || !policy.tenant().is_empty() => None,
            None => Some(""),
        }
    }

    /// Returns a listed key with its active limit, or the limit last known to the store. `None` if it does not match.
    pub(super) fn find<'a, H>(
        &self,
        active: &ActivePolicy<H>,
        listed: &'a ListedKey,
    ) -> Option<FoundKey<'a>> {
        let policy = active.policy();
        let subject = Subject::from_escaped(&listed.subject)?;
        let limit = active.limit(&subject, &listed.rule, &listed.limit, listed.algorithm);
        let limit = limit.or_else(|| listed.known.clone())?;
        let tenant = Subject::parse(&listed.subject)?.tenant;
        let tenant = String::from_utf8_lossy(&tenant).into_owned();
        let matches = subject.key().starts_with(&self.prefix)
            && self.tenant(policy).is_none_or(|wanted| wanted == tenant);
        matches.then_some(FoundKey { listed, limit, subject, tenant })
    }
}
