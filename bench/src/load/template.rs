//! Request templates: formatted once, sent many times with different key and rule numbers.

use crate::keys;

/// Placeholder of the key number, as long as the eight digits that replace it.
pub const KEY: &str = "<key-no>";
/// Placeholder of the rule number, as long as the eight digits that replace it.
pub const RULE: &str = "<ruleno>";

/// The key and rule of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The key number.
    pub key: u32,
    /// The number of the matching rule, if there are rules.
    pub rule: u32,
}

/// The bytes of a request with [`KEY`] and [`RULE`] at most once each.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Vec<u8>,
    key: Option<usize>,
    rule: Option<usize>,
}

impl Template {
    /// Creates a template.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let offset = |placeholder: &str| {
            let mut places = bytes.windows(placeholder.len());
            places.position(|place| place == placeholder.as_bytes())
        };
        let (key, rule) = (offset(KEY), offset(RULE));
        Self { bytes, key, rule }
    }

    /// Returns the length of every request in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the request with these numbers.
    #[inline]
    pub fn write(&self, numbers: Numbers, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for (offset, number) in [(self.key, numbers.key), (self.rule, numbers.rule)] {
            let Some(offset) = offset else { continue };
            let places = out.get_mut(start + offset..).unwrap_or_default();
            for (place, pair) in places.chunks_exact_mut(2).zip(keys::digits(number)) {
                place.copy_from_slice(pair.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_as_long_as_the_digits() {
        assert_eq!([KEY.len(), RULE.len()], [keys::digits(0).concat().len(); 2]);
    }

    #[test]
    fn numbers_are_replaced_in_any_order() {
        for text in [format!("{KEY} of {RULE}"), format!("{RULE} of {KEY}"), RULE.to_owned()] {
            let template = Template::new(text.clone().into_bytes());
            let (mut out, mut expected) = (Vec::new(), String::new());
            for (key, rule) in [(12_345_678, 9), (1, 87_654_321)] {
                template.write(Numbers { key, rule }, &mut out);
                let filled = text.replace(KEY, &format!("{key:08}"));
                expected.push_str(&filled.replace(RULE, &format!("{rule:08}")));
            }
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
