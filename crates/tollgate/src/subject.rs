//! Subjects: the values of the `per` facts, encoded as unambiguous text.

use std::borrow::Cow;
use std::fmt;

/// The placeholder for a missing fact. It cannot be an escaped value, where `%` is always followed by a hex digit.
const MISSING: &str = "%-";

/// The tenant and the values of the `per` facts, escaped and joined with `:`.
///
/// Different lists of values never have the same subject, whatever bytes they contain. The text is safe inside a
/// key: `%{}:/` and all bytes outside printable ASCII are percent-escaped.
///
/// ```
/// use tollgate::Subject;
///
/// assert_eq!(Subject::of(["a:b", "c"]).as_str(), ":a%3Ab:c");
/// assert_eq!(Subject::of(["a", "b:c"]).as_str(), ":a:b%3Ac");
/// assert_eq!(Subject::in_tenant("acme", ["user 1"]).as_str(), "acme:user%201");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject(String);

impl Subject {
    /// Creates the subject of these values without a tenant.
    #[must_use]
    pub fn of<F: AsRef<[u8]>>(facts: impl IntoIterator<Item = F>) -> Self {
        Self::in_tenant("", facts)
    }

    /// Creates the subject of these values in a tenant. Subjects of different tenants always differ.
    #[must_use]
    pub fn in_tenant<F: AsRef<[u8]>>(
        tenant: impl AsRef<[u8]>,
        facts: impl IntoIterator<Item = F>,
    ) -> Self {
        Self::from_optional(tenant, facts.into_iter().map(Some))
    }

    /// Creates a subject in which facts can be missing. A missing fact differs from every value, including the
    /// empty one.
    ///
    /// ```
    /// use tollgate::Subject;
    ///
    /// let anonymous = Subject::from_optional("", [None::<&str>]);
    /// assert_eq!(anonymous.as_str(), ":%-");
    /// assert_ne!(anonymous, Subject::of(["%-"]));
    /// ```
    #[must_use]
    pub fn from_optional<F: AsRef<[u8]>>(
        tenant: impl AsRef<[u8]>,
        facts: impl IntoIterator<Item = Option<F>>,
    ) -> Self {
        let mut subject = Self::empty();
        subject.set(tenant, facts);
        subject
    }

    /// Creates a subject without memory, which is not a valid key until it is [set](Self::set).
    pub(crate) const fn empty() -> Self {
        Self(String::new())
    }

    /// Returns the size of the memory, in bytes.
    #[cfg(feature = "policy")]
    pub(crate) const fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Replaces the tenant and the values, and reuses the memory.
    #[inline]
    pub(crate) fn set<F: AsRef<[u8]>>(
        &mut self,
        tenant: impl AsRef<[u8]>,
        facts: impl IntoIterator<Item = Option<F>>,
    ) {
        let mut text = std::mem::take(&mut self.0).into_bytes();
        text.clear();
        // Enough for most subjects; longer ones reallocate.
        text.reserve(tenant.as_ref().len() + 40);
        escape_into(&mut text, tenant.as_ref());
        for fact in facts {
            text.push(b':');
            match fact {
                Some(fact) => escape_into(&mut text, fact.as_ref()),
                None => text.extend_from_slice(MISSING.as_bytes()),
            }
        }
        // The text is ASCII, so the conversion cannot fail.
        self.0 = String::from_utf8(text).unwrap_or_default();
    }

    /// Decodes the text of a subject into tenant and values; `None` if it is not the text of a subject.
    ///
    /// ```
    /// use tollgate::Subject;
    ///
    /// let parts = Subject::parse("acme:user%201:%-").ok_or("no subject")?;
    /// assert_eq!(parts.tenant, b"acme");
    /// assert_eq!(parts.facts, [Some(b"user 1".to_vec()), None]);
    /// assert_eq!(Subject::parse("100%"), None);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<SubjectParts> {
        let mut parts = text.split(':');
        let tenant = unescape(parts.next()?)?;
        let fact = |part| if part == MISSING { Some(None) } else { unescape(part).map(Some) };
        let parts = SubjectParts { tenant, facts: parts.map(fact).collect::<Option<_>>()? };
        // Only the canonical encoding is valid: `%61` decodes to `a`, but `a` is never escaped.
        (Self::from_optional(&parts.tenant, parts.facts.iter().map(Option::as_ref)).0 == text)
            .then_some(parts)
    }

    /// Creates a subject from its escaped text; `None` if it is not the text of a subject.
    ///
    /// ```
    /// use tollgate::Subject;
    ///
    /// assert_eq!(Subject::from_escaped(":a%3Ab"), Some(Subject::of(["a:b"])));
    /// assert_eq!(Subject::from_escaped(":a b"), None);
    /// ```
    #[must_use]
    pub fn from_escaped(text: &str) -> Option<Self> {
        Self::parse(text).map(|_| Self(text.to_owned()))
    }

    /// Returns a readable form without the tenant: the value itself if there is one fact, else the escaped values
    /// joined with `:`. `*` is the subject of `per: []`; `*anonymous*` is that of a single missing fact.
    ///
    /// ```
    /// use tollgate::Subject;
    ///
    /// assert_eq!(Subject::in_tenant("acme", ["user:1"]).key(), "user:1");
    /// assert_eq!(Subject::of(["a:b", "c"]).key(), "a%3Ab:c");
    /// ```
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        let Some((_, values)) = self.0.split_once(':') else { return Cow::Borrowed("*") };
        if values.contains(':') || !values.contains('%') {
            return Cow::Borrowed(values);
        }
        match unescape(values) {
            Some(value) => Cow::Owned(
                String::from_utf8(value)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            ),
            None => Cow::Borrowed("*anonymous*"),
        }
    }

    /// Returns the escaped text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The decoded parts of a [`Subject`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectParts {
    /// The tenant; empty if there is none.
    pub tenant: Vec<u8>,
    /// The values of the facts; `None` if a fact is missing.
    pub facts: Vec<Option<Vec<u8>>>,
}

/// Whether each byte is escaped: all but printable ASCII, and `%{}:/`.
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it")]
const IS_ESCAPED: [bool; 256] = {
    let (mut is_escaped, mut byte) = ([true; 256], b'!');
    while byte <= b'~' {
        is_escaped[byte as usize] = matches!(byte, b'%' | b'{' | b'}' | b':' | b'/');
        byte += 1;
    }
    is_escaped
};

/// Appends a value with all special bytes percent-escaped. The output is printable ASCII.
#[inline]
fn escape_into(text: &mut Vec<u8>, fact: &[u8]) {
    match fact.iter().position(is_escaped) {
        Some(first) => escape_bytes_into(text, fact, first),
        None => text.extend_from_slice(fact),
    }
}

/// Returns whether a subject escapes this byte.
pub(crate) fn is_escaped(byte: &u8) -> bool {
    IS_ESCAPED.get(usize::from(*byte)).copied().unwrap_or(true)
}

/// Appends a value whose first special byte is at `first`. Copies the bytes between special ones together: keys such as
/// `user:1` have few.
#[inline(never)]
fn escape_bytes_into(text: &mut Vec<u8>, fact: &[u8], first: usize) {
    // Most values need a few escapes at most.
    text.reserve(fact.len() + 16);
    let digit = |nibble: u8| b"0123456789ABCDEF".get(usize::from(nibble)).copied().unwrap_or(b'0');
    let (mut rest, mut special) = (fact, Some(first));
    while let Some((plain, [byte, after @ ..])) = special.and_then(|at| rest.split_at_checked(at)) {
        text.extend_from_slice(plain);
        text.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        (rest, special) = (after, after.iter().position(is_escaped));
    }
    text.extend_from_slice(rest);
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut pieces = text.as_bytes().split(|byte| *byte == b'%');
    bytes.extend_from_slice(pieces.next()?);
    for piece in pieces {
        let (escape, plain) = piece.split_first_chunk::<2>()?;
        let [high, low] = escape.map(|digit| char::from(digit).to_digit(16));
        bytes.push(u8::try_from(high? << 4 | low?).ok()?);
        bytes.extend_from_slice(plain);
    }
    Some(bytes)
}
