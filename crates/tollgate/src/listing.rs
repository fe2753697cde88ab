//! Listings: which keys are in use, page by page.

use crate::limit::Limit;
use crate::limit::identity::{Algorithm, Identity};

/// Which keys to list.
///
/// ```
/// use tollgate::{Limit, LocalLimiter, Listing, Quota};
///
/// let limiter = LocalLimiter::new(Limit::token_bucket(Quota::per_minute(10))?);
/// let _ = limiter.take("user:1");
/// let page = limiter.list(&Listing::all().with_prefix("user:"))?;
/// assert_eq!(page.keys[0].subject, "user:1");
/// assert!(page.next.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    prefix: String,
    page_size: usize,
    after: Option<Cursor>,
}

impl Listing {
    /// What subjects must begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// About how many keys a page has, at least one.
    #[must_use]
    pub const fn page_size(&self) -> usize {
        self.page_size
    }

    /// Where to go on; none at the beginning.
    #[must_use]
    pub const fn cursor(&self) -> Option<&Cursor> {
        self.after.as_ref()
    }

    /// Every key in use, from the beginning, 100 a page.
    #[must_use]
    pub const fn all() -> Self {
        Self { prefix: String::new(), page_size: 100, after: None }
    }

    /// Only subjects that begin so.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// About so many keys a page, at least one.
    #[must_use]
    pub fn with_page_size(self, keys: usize) -> Self {
        Self { page_size: keys.max(1), ..self }
    }

    /// The page after the one that ended with this cursor.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> Self {
        Self { after: Some(cursor), ..self }
    }
}

/// Where a listing goes on. Opaque: it means something to the store that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(String);

impl Cursor {
    /// A cursor from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Some of the keys in use, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The keys.
    pub keys: Vec<ListedKey>,
    /// Where the next page begins; none after the last.
    pub next: Option<Cursor>,
}

/// A key in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedKey {
    /// Whose.
    pub subject: String,
    /// The rule of its limit.
    pub rule: String,
    /// The name of its limit.
    pub limit: String,
    /// How it counts.
    pub algorithm: Algorithm,
    /// The limit under which the store last saw the key, if it remembers: limits that came with
    /// requests are in no policy, and their figures can be told all the same.
    pub known: Option<Limit>,
}

impl ListedKey {
    /// The key of this subject under the limit that wrote this [scope](crate::Limit::identity); none if
    /// no limit did.
    #[must_use]
    pub fn with_identity(subject: &str, scope: &str) -> Option<Self> {
        let Identity { algorithm, rule, name: limit, .. } = Identity::parse(scope)?;
        let (subject, rule, limit) = (subject.to_owned(), rule.to_owned(), limit.to_owned());
        Some(Self { subject, rule, limit, algorithm, known: None })
    }
}
