//! Facts of a descriptor of Envoy's rate limit service.

use super::facts::{Facts, FactsError, FactsErrorKind, is_fact_name};

/// The maximum length of a descriptor: its domain, keys and values together, in bytes.
pub const MAX_DESCRIPTOR_LENGTH: usize = 64 << 10;

/// The prefix of the facts that hold single entries.
pub(crate) const ENTRY_PREFIX: &str = "entry:";

impl Facts<'static> {
    /// Creates the facts of one descriptor of Envoy's rate limit service. `index` is its position in the request.
    ///
    /// | fact | value |
    /// |---|---|
    /// | `domain` | the domain |
    /// | `descriptor` | the entries in order as `key=value`, joined by `/` |
    /// | `descriptor_index` | the position of the descriptor, from 0 |
    /// | `entry:KEY` | the value of the first entry with this key |
    ///
    /// In `descriptor` and in the name `entry:KEY`, every byte of a key or value is percent-escaped (`%2F`) except
    /// letters, digits and `-._~`. The values of `entry:KEY` are not escaped and can be empty. Matching uses values of
    /// any length; for counting, a value of more than 1024 bytes is replaced by `sha256:` and its digest.
    ///
    /// An entry whose escaped key has more than 58 characters has no fact `entry:KEY`, because fact names have at most
    /// 64; it is part of `descriptor`.
    ///
    /// ```
    /// use tollgate::Facts;
    ///
    /// let entries = [("message_type", "marketing"), ("to number", "1/2")];
    /// let facts = Facts::of_descriptor("messaging", entries, 0)?;
    /// let descriptor = &b"message_type=marketing/to%20number=1%2F2"[..];
    /// assert_eq!(facts.get("descriptor"), Some(descriptor));
    /// assert_eq!(facts.get("domain"), Some(&b"messaging"[..]));
    /// assert_eq!(facts.get("descriptor_index"), Some(&b"0"[..]));
    /// assert_eq!(facts.get("entry:to%20number"), Some(&b"1/2"[..]));
    /// # Ok::<(), tollgate::FactsError>(())
    /// ```
    ///
    /// # Errors
    /// An empty domain, no entries, more than 29 different keys, or more than [`MAX_DESCRIPTOR_LENGTH`] bytes.
    pub fn of_descriptor<K: AsRef<str>, V: AsRef<str>>(
        domain: &str,
        entries: impl IntoIterator<Item = (K, V)>,
        index: usize,
    ) -> Result<Self, FactsError> {
        if domain.is_empty() {
            return Err(FactsError::new(FactsErrorKind::Value, "domain", true));
        }
        let (mut facts, mut descriptor) = (Self::new(), String::new());
        facts.insert_descriptor_fact("domain", domain.to_owned())?;
        facts.insert_descriptor_fact("descriptor_index", index.to_string())?;
        let mut length = domain.len();
        for (position, (key, value)) in entries.into_iter().enumerate() {
            let (key, value) = (key.as_ref(), value.as_ref());
            length = length.saturating_add(key.len()).saturating_add(value.len());
            if length > MAX_DESCRIPTOR_LENGTH {
                return Err(invalid("the descriptor is longer than the maximum of 65536 bytes"));
            }
            if position > 0 {
                descriptor.push('/');
            }
            escape_into(&mut descriptor, key);
            descriptor.push('=');
            escape_into(&mut descriptor, value);
            if let Some(name) = entry_fact(key)
                && facts.get(&name).is_none()
            {
                facts.insert_descriptor_fact(name, value.to_owned())?;
            }
        }
        if descriptor.is_empty() {
            return Err(invalid("a descriptor must have at least one entry"));
        }
        facts.insert_descriptor_fact("descriptor", descriptor)?;
        Ok(facts)
    }
}

fn invalid(reason: &'static str) -> FactsError {
    FactsError::with_reason(FactsErrorKind::Value, "descriptor", reason)
}

/// Returns the name of the fact that holds the entry with this key, or `None` if the name would be too long.
pub(crate) fn entry_fact(key: &str) -> Option<String> {
    let mut name = ENTRY_PREFIX.to_owned();
    escape_into(&mut name, key);
    is_fact_name(&name).then_some(name)
}

/// Returns a key or value as it is written in the fact `descriptor`.
#[cfg(feature = "policy")]
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    escape_into(&mut escaped, text);
    escaped
}

/// Appends `text` with all bytes percent-escaped except the unreserved ones of RFC 3986.
fn escape_into(escaped: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let digit = |nibble: u8| {
                char::from_digit(u32::from(nibble), 16).unwrap_or('0').to_ascii_uppercase()
            };
            escaped.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}
