//! Going through the keys in use, page by page, for those that are asked for.

use tollgate::policy::Policy;
use tollgate::{ActivePolicy, Cursor, Limit, ListedKey, Listing, Subject};

use crate::app::App;
use crate::error::ApiError;
use crate::key_listing::{self, InUse, Sought};

/// The most keys looked at for one page, and the most steps to look at them in: a page may be empty
/// and still have a cursor.
const MOST_KEYS: usize = 10_000;
const MOST_STEPS: usize = 200;

/// Which page is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) tenant: Option<String>,
    pub(crate) prefix: String,
    pub(crate) page_size: usize,
    pub(crate) cursor: Option<String>,
}

/// A key in use, its limit, and what people call it.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) listed: &'a ListedKey,
    pub(super) limit: Limit,
    pub(super) subject: Subject,
    pub(super) tenant: String,
}

/// A page in the making.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    in_use: InUse<'a>,
    page_size: usize,
    /// Where to go on; none when all keys have been seen.
    listing: Option<Listing>,
    looked_at: usize,
    steps: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn begin(app: &'a App, policy: &'a Policy, sought: Sought, wanted: &Wanted) -> Self {
        let (in_use, listing) = (InUse::new(app, policy, sought), Some(wanted.listing(policy)));
        Self { in_use, page_size: wanted.page_size, listing, looked_at: 0, steps: 0 }
    }

    /// The next keys to look at, where so many are shown on the page already; none when it is full.
    pub(super) async fn step(
        &mut self,
        shown: usize,
    ) -> Result<Option<key_listing::Found>, ApiError> {
        let is_done =
            shown > self.page_size / 2 || self.looked_at >= MOST_KEYS || self.steps == MOST_STEPS;
        let Some(listing) = self.listing.take_if(|_| !is_done) else { return Ok(None) };
        // More than what is still missing is not asked for, but Redis may find more at a time than it is asked
        // for, and what it found is shown. Nearly full is full.
        let listing = listing.with_page_size(self.page_size - shown);
        let found = self.in_use.page(&listing).await;
        let mut found = found.map_err(|error| ApiError::from(&error))?;
        self.listing = found.next.take().map(|next| listing.after(next));
        self.looked_at += found.looked_at;
        self.steps += 1;
        Ok(Some(found))
    }

    /// Where the next page begins.
    pub(super) fn cursor(self) -> Option<String> {
        self.listing?.cursor().map(|cursor| cursor.as_str().to_owned())
    }
}

impl Wanted {
    /// The keys among which the wanted ones are. What people call a key joins several facts by `:`, and
    /// one fact may hold a `:` itself, so the store is asked for what comes before.
    fn listing(&self, policy: &Policy) -> Listing {
        let begins = self.prefix.split(':').next().unwrap_or_default();
        // Escapes and stars are what people see, and not what is stored.
        let is_as_stored = !begins.is_empty() && !begins.contains(['%', '*']);
        let subject = match self.tenant(policy) {
            None => None,
            Some(tenant) if is_as_stored => Some(Subject::in_tenant(tenant, [begins])),
            Some(tenant) => Some(Subject::in_tenant(tenant, [""; 0])),
        };
        let prefix = subject.map(|subject| subject.as_str().to_owned()).unwrap_or_default();
        let listing = Listing::all().with_prefix(prefix);
        match &self.cursor {
            Some(cursor) => listing.after(Cursor::new(cursor.clone())),
            None => listing,
        }
    }

    /// The tenant asked for. Where only a prefix is, that of requests which name none, unless the policy
    /// gives those one: limits that come with a request do not know of it.
    fn tenant<'a>(&'a self, policy: &'a Policy) -> Option<&'a str> {
        match &self.tenant {
            Some(tenant) => Some(tenant),
            None if self.prefix.is_empty() || !policy.tenant().is_empty() => None,
            None => Some(""),
        }
    }

    /// The key with its limit, as it is in force now or else as the store last saw it.
    pub(super) fn find<'a, H>(
        &self,
        current: &ActivePolicy<H>,
        listed: &'a ListedKey,
    ) -> Option<Found<'a>> {
        let policy = current.policy();
        let subject = Subject::from_escaped(&listed.subject)?;
        let now = current.limit(&subject, &listed.rule, &listed.limit, listed.algorithm);
        let limit = now.or_else(|| listed.known.clone())?;
        let tenant = Subject::parse(&listed.subject)?.tenant;
        let tenant = String::from_utf8_lossy(&tenant).into_owned();
        let is_wanted = subject.key().starts_with(&self.prefix)
            && self.tenant(policy).is_none_or(|wanted| wanted == tenant);
        is_wanted.then_some(Found { listed, limit, subject, tenant })
    }
}
