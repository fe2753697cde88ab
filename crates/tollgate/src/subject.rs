//! Subjects: whom a limit counts, as text that no two of them share.

use std::fmt;

/// The values of the facts that a limit is keyed by, escaped and joined.
///
/// Whatever bytes the facts hold, two different lists of facts never give the same subject, and the
/// text is safe inside a key: `%{}:/` and all that is not printable ASCII are percent-escaped.
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
    /// The subject of these facts, of no tenant.
    #[must_use]
    pub fn of<F: AsRef<[u8]>>(facts: impl IntoIterator<Item = F>) -> Self {
        Self::in_tenant("", facts)
    }

    /// The subject of these facts in a tenant. Tenants never share a key.
    #[must_use]
    pub fn in_tenant<F: AsRef<[u8]>>(tenant: &str, facts: impl IntoIterator<Item = F>) -> Self {
        let mut text = String::new();
        escape_into(&mut text, tenant.as_bytes());
        for fact in facts {
            text.push(':');
            escape_into(&mut text, fact.as_ref());
        }
        Self(text)
    }

    /// The escaped text.
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

/// Whether a text could be a subject's: nothing in it would need escaping, and escapes are whole.
pub(crate) fn is_escaped(text: &str) -> bool {
    let mut pieces = text.split('%');
    let is_plain = |text: &str| text.bytes().all(|byte| byte == b':' || !needs_escape(byte));
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    pieces.next().is_none_or(is_plain)
        && pieces.all(|piece| {
            let escape = piece.as_bytes().first_chunk::<2>();
            escape.is_some_and(|digits| digits.iter().all(is_digit)) && is_plain(piece)
        })
}

fn needs_escape(byte: u8) -> bool {
    !byte.is_ascii_graphic() || b"%{}:/".contains(&byte)
}

fn escape_into(text: &mut String, fact: &[u8]) {
    for &byte in fact {
        if needs_escape(byte) {
            let digit = |nibble: u8| {
                char::from(b"0123456789ABCDEF".get(usize::from(nibble)).copied().unwrap_or(b'0'))
            };
            text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        } else {
            text.push(char::from(byte));
        }
    }
}
