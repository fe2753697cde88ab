//! Facts: the known properties of a request.

use std::borrow::Cow;
use std::fmt;

use smallvec::SmallVec;
use thiserror::Error;

use super::fact_value::FactValue;

/// The maximum number of facts in a request.
pub const MAX_FACTS: usize = 32;
/// The maximum length of a fact name, in bytes.
const MAX_NAME: usize = 64;
/// The maximum length of a fact value, in bytes.
pub const MAX_FACT_LENGTH: usize = 1024;

/// The known properties of a request by name: `client`, `user`, `path`, and any other name.
///
/// A request has at most 32 facts. Names have 1 to 64 printable ASCII characters without spaces; values have 1 to
/// 1024 bytes and do not need to be UTF-8, because keys and headers are not always text. Leave out facts that are
/// not known: an empty value is an error, so that it cannot be mistaken for a missing one. Headers are named
/// `header:x-plan`; their names are case-insensitive. [`Facts::of_descriptor`] creates the facts of an Envoy
/// descriptor, whose values can be longer or empty.
///
/// ```
/// use tollgate::{Facts, FactsErrorKind};
///
/// let mut facts = Facts::new();
/// facts.insert("client", "c1")?;
/// facts.insert("path", "/search")?;
/// assert_eq!(facts.get("client"), Some(&b"c1"[..]));
///
/// let error = facts.insert("user", "").unwrap_err();
/// assert_eq!(error.kind(), FactsErrorKind::Value);
/// assert_eq!(error.to_string(), "facts.user: the value is empty; leave the fact out if it is not known");
/// # Ok::<(), tollgate::FactsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts<'a> {
    entries: SmallVec<[Entry<'a>; 6]>,
}

/// A name and a value.
type Entry<'a> = (Cow<'a, str>, FactValue<'a>);

impl<'a> Facts<'a> {
    /// Creates an empty set of facts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates facts from pairs of name and value.
    ///
    /// ```
    /// use tollgate::Facts;
    ///
    /// let facts = Facts::of([("client", "c1"), ("method", "GET")])?;
    /// assert_eq!(facts.iter().count(), 2);
    /// # Ok::<(), tollgate::FactsError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Facts::insert`].
    pub fn of<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Result<Self, FactsError>
    where
        N: Into<Cow<'a, str>>,
        V: Into<FactValue<'a>>,
    {
        let mut facts = Self::new();
        for (name, value) in pairs {
            facts.insert(name, value)?;
        }
        Ok(facts)
    }

    /// Adds a fact.
    ///
    /// # Errors
    /// An invalid name or value (see [`Facts`]), a duplicate name, or a 33rd fact.
    pub fn insert(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<FactValue<'a>>,
    ) -> Result<(), FactsError> {
        let (name, value) = (lowercase_header(name.into()), value.into());
        let length = value.as_bytes().len();
        let error = if !is_fact_name(&name) {
            Some(FactsErrorKind::Name)
        } else if !(1..=MAX_FACT_LENGTH).contains(&length) {
            Some(FactsErrorKind::Value)
        } else if self.get(&name).is_some() {
            Some(FactsErrorKind::Duplicate)
        } else if self.entries.len() == MAX_FACTS {
            Some(FactsErrorKind::TooMany)
        } else {
            None
        };
        if let Some(kind) = error {
            return Err(FactsError::new(kind, &name, length == 0));
        }
        self.entries.push((name, value));
        Ok(())
    }

    /// Adds a fact of a policy, whose name is valid, and which the request does not have yet. A value that cannot be a
    /// fact counts as missing, and so does a 33rd fact.
    #[cfg(feature = "policy")]
    #[inline]
    pub(crate) fn push(&mut self, name: &'a str, value: FactValue<'a>) {
        let is_usable = (1..=MAX_FACT_LENGTH).contains(&value.as_bytes().len());
        if is_usable && self.entries.len() < MAX_FACTS {
            self.entries.push((Cow::Borrowed(name), value));
        }
    }

    /// Adds a fact of a descriptor: its value can be empty, or longer than [`MAX_FACT_LENGTH`]. The caller bounds the
    /// total length and adds no name twice.
    pub(super) fn insert_descriptor_fact(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<FactValue<'a>>,
    ) -> Result<(), FactsError> {
        let (name, value) = (name.into(), value.into());
        if self.entries.len() == MAX_FACTS {
            return Err(FactsError::new(FactsErrorKind::TooMany, &name, false));
        }
        self.entries.push((name, value));
        Ok(())
    }

    /// Copies borrowed names and values, so that the facts have no lifetime.
    ///
    /// ```
    /// use tollgate::Facts;
    ///
    /// let kept: Facts<'static> = {
    ///     let header = String::from("c1");
    ///     Facts::of([("client", &header)])?.into_owned()
    /// };
    /// assert_eq!(kept.get("client"), Some(&b"c1"[..]));
    /// # Ok::<(), tollgate::FactsError>(())
    /// ```
    #[must_use]
    pub fn into_owned(self) -> Facts<'static> {
        let owned = |(name, value): Entry<'a>| (Cow::Owned(name.into_owned()), value.into_owned());
        Facts { entries: self.entries.into_iter().map(owned).collect() }
    }

    /// Returns the value of a fact, or `None` if it is not known.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Returns the value of a fact, with what is known about it.
    #[cfg(feature = "policy")]
    pub(crate) fn value(&self, name: &str) -> Option<&FactValue<'a>> {
        self.entries.iter().find_map(|(known, value)| (&**known == name).then_some(value))
    }

    /// Returns names and values in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().map(|(name, value)| (&**name, value.as_bytes()))
    }
}

/// Converts the name of a header fact to lower case, its prefix too. Other names are returned unchanged.
pub(crate) fn lowercase_header(name: Cow<'_, str>) -> Cow<'_, str> {
    let is_header = name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("header:"));
    if is_header && name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    name
}

/// Returns whether a fact name is valid: 1 to 64 printable ASCII characters, no spaces.
pub(crate) fn is_fact_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A fact is invalid. The message contains its name but never its value.
///
/// ```
/// use tollgate::{Facts, FactsErrorKind};
///
/// let error = Facts::of([("client", "a"), ("client", "b")]).unwrap_err();
/// assert_eq!(error.kind(), FactsErrorKind::Duplicate);
/// assert_eq!(error.to_string(), "facts.client: the fact is given twice");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct FactsError {
    kind: FactsErrorKind,
    name: String,
    reason: &'static str,
}

/// The kind of a [`FactsError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FactsErrorKind {
    /// The name is empty, too long, or has a space or a character outside printable ASCII.
    Name,
    /// The value is empty or too long.
    Value,
    /// The fact is given twice.
    Duplicate,
    /// The request has more than 32 facts.
    TooMany,
}

impl FactsError {
    pub(super) fn new(kind: FactsErrorKind, name: &str, is_empty: bool) -> Self {
        let reason = match kind {
            FactsErrorKind::Name => "a name must be 1 to 64 printable ASCII characters, no spaces",
            FactsErrorKind::Value if is_empty => {
                "the value is empty; leave the fact out if it is not known"
            }
            FactsErrorKind::Value => "the value is longer than the maximum of 1024 bytes",
            FactsErrorKind::Duplicate => "the fact is given twice",
            FactsErrorKind::TooMany => "a request can have at most 32 facts",
        };
        Self::with_reason(kind, name, reason)
    }

    pub(super) fn with_reason(kind: FactsErrorKind, name: &str, reason: &'static str) -> Self {
        let name = name.chars().take(MAX_NAME).flat_map(char::escape_default).collect();
        Self { kind, name, reason }
    }

    /// Returns the message without the name of the fact.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.reason
    }

    /// Returns the kind of the error.
    #[must_use]
    pub const fn kind(&self) -> FactsErrorKind {
        self.kind
    }

    /// Always false: the same facts fail again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}

impl fmt::Display for FactsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "facts.{}: {}", self.name, self.reason)
    }
}
