//! Paged listing of active keys.

use crate::algorithm::Algorithm;
use crate::limit::Limit;
use crate::limit::identity::Identity;

/// Request for a page of active keys.
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
    /// Required prefix of subjects.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Approximate number of keys per page, at least 1.
    #[must_use]
    pub const fn page_size(&self) -> usize {
        self.page_size
    }

    /// Cursor of the previous page; `None` for the first page.
    #[must_use]
    pub const fn cursor(&self) -> Option<&Cursor> {
        self.after.as_ref()
    }

    /// Lists all active keys from the start, 100 per page.
    #[must_use]
    pub const fn all() -> Self {
        Self { prefix: String::new(), page_size: 100, after: None }
    }

    /// Restricts the listing to subjects with this prefix.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// Sets the approximate number of keys per page, at least 1.
    #[must_use]
    pub fn with_page_size(self, keys: usize) -> Self {
        Self { page_size: keys.max(1), ..self }
    }

    /// Continues after the page that returned this cursor.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> Self {
        Self { after: Some(cursor), ..self }
    }
}

/// Position in a listing. Opaque; valid only for the store that returned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(String);

impl Cursor {
    /// Creates a cursor from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The cursor as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A page of active keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Keys of this page.
    pub keys: Vec<ListedKey>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<Cursor>,
}

/// An active key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedKey {
    /// Subject of the key, as escaped text.
    pub subject: String,
    /// Rule of the limit.
    pub rule: String,
    /// Name of the limit.
    pub limit: String,
    /// Algorithm of the limit.
    pub algorithm: Algorithm,
    /// Limit of the last operation on the key, if the store stores it. It allows reporting the figures of
    /// inline limits, which are in no policy.
    pub known: Option<Limit>,
}

impl ListedKey {
    /// Creates a listed key from a subject and a limit [identity](crate::Limit::identity). Returns `None` if the
    /// identity is invalid.
    #[must_use]
    pub fn with_identity(subject: &str, identity: &str) -> Option<Self> {
        let Identity { letter, rule, name: limit } = Identity::parse(identity)?;
        let algorithm = letter.algorithm();
        let (subject, rule, limit) = (subject.to_owned(), rule.to_owned(), limit.to_owned());
        Some(Self { subject, rule, limit, algorithm, known: None })
    }
}
