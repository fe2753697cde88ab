//! Wildcard patterns: text in which `*` matches any bytes.

use std::ops::Range;

use smallvec::SmallVec;

/// Bytes that a fact is compared with. Up to 24 bytes are stored inline, to save a memory access per rule.
pub(super) type Literal = SmallVec<[u8; 24]>;

/// A pattern in which `*` matches any number of bytes, including none. A backslash escapes `*`, `\`, `{`
/// and `}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wildcard {
    prefix: Literal,
    middles: Vec<Needle>,
    suffix: Literal,
}

/// Parsed text: an exact value, or a pattern if it contains `*`.
pub(super) enum Text {
    Exact(Literal),
    Wild(Wildcard),
}

impl Text {
    pub(super) fn parse(text: &str) -> Self {
        let mut pieces = pieces(text).into_iter();
        let first = pieces.next().unwrap_or_default();
        let Some(last) = pieces.next_back() else { return Self::Exact(first) };
        let middles = pieces.filter(|piece| !piece.is_empty()).map(Needle::new).collect();
        Self::Wild(Wildcard { prefix: first, middles, suffix: last })
    }
}

/// Splits `text` at its unescaped stars.
fn pieces(text: &str) -> Vec<Literal> {
    let mut pieces = vec![Literal::new()];
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        let escaped =
            if byte == b'\\' { rest.next_if(|next| br"*\{}".contains(next)) } else { None };
        match (escaped.unwrap_or(byte), escaped, pieces.last_mut()) {
            (b'*', None, _) => pieces.push(Literal::new()),
            (byte, _, Some(piece)) => piece.push(byte),
            (_, _, None) => {}
        }
    }
    pieces
}

impl Wildcard {
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.matches_at(text, |_| true)
    }

    /// Matches percent-escaped text: no literal matches in the middle of an escape, so that `*2F` does not match
    /// `%2F`.
    pub(super) fn matches_escaped(&self, text: &[u8]) -> bool {
        let is_escape = |before: usize, position: usize| {
            position.checked_sub(before).and_then(|at| text.get(at)) == Some(&b'%')
        };
        self.matches_at(text, |position| !is_escape(1, position) && !is_escape(2, position))
    }

    /// Matches text in which a literal after a star can start at the positions that `can_start` accepts.
    fn matches_at(&self, text: &[u8], can_start: impl Fn(usize) -> bool) -> bool {
        let inner =
            text.strip_prefix(&*self.prefix).and_then(|rest| rest.strip_suffix(&*self.suffix));
        let Some(inner) = inner else { return false };
        let (mut start, end) = (self.prefix.len(), self.prefix.len() + inner.len());
        if !self.suffix.is_empty() && !can_start(end) {
            return false;
        }
        // The first occurrence of a literal leaves the most text for the next ones, so no backtracking is needed.
        for needle in &self.middles {
            match needle.find(text, start..end, &can_start) {
                Some(after) => start = after,
                None => return false,
            }
        }
        true
    }

    /// Returns the literal before the first star.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Returns the literal after the last star.
    pub(super) fn suffix(&self) -> &[u8] {
        &self.suffix
    }
}

/// A literal to search for in linear time for any input (Knuth–Morris–Pratt).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Needle {
    bytes: Literal,
    /// For each prefix of the literal, the length of its longest proper suffix that is also a prefix.
    borders: Box<[usize]>,
}

impl Needle {
    fn new(bytes: Literal) -> Self {
        let mut needle = Self { bytes, borders: Box::default() };
        let mut borders = vec![0];
        for byte in needle.bytes.iter().skip(1) {
            needle.borders = borders.clone().into();
            let last = borders.last().copied().unwrap_or(0);
            borders.push(needle.matched(last, *byte));
        }
        needle.borders = borders.into();
        needle
    }

    /// Returns how many bytes of the literal match up to and including `byte`, if `length` bytes matched before.
    fn matched(&self, mut length: usize, byte: u8) -> usize {
        loop {
            if self.bytes.get(length) == Some(&byte) {
                return length + 1;
            }
            match length.checked_sub(1).and_then(|last| self.borders.get(last)) {
                Some(shorter) => length = *shorter,
                None => return 0,
            }
        }
    }

    /// Returns the end of the first occurrence of the literal within `range` that starts at an accepted position.
    fn find(
        &self,
        text: &[u8],
        range: Range<usize>,
        can_start: &impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut length = 0;
        for (end, byte) in (range.start + 1..).zip(text.get(range)?) {
            length = self.matched(length, *byte);
            if length == self.bytes.len() && can_start(end - length) {
                return Some(end);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Text;

    fn matches(pattern: &str, text: &[u8]) -> bool {
        match Text::parse(pattern) {
            Text::Exact(exact) => *exact == *text,
            Text::Wild(wildcard) => wildcard.matches(text),
        }
    }

    /// Reference implementation: tries every length for every star.
    fn brute_force(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|skip| brute_force(rest, &text[skip..])),
            Some((byte, rest)) => text
                .split_first()
                .is_some_and(|(first, text)| first == byte && brute_force(rest, text)),
        }
    }

    proptest! {
        #[test]
        fn matches_like_the_brute_force_search(pattern in "[ab*]{0,9}", text in "[ab]{0,12}") {
            prop_assert_eq!(matches(&pattern, text.as_bytes()), brute_force(pattern.as_bytes(), text.as_bytes()));
        }
    }

    /// Returns the tokens of percent-escaped text: one per unescaped byte.
    fn tokens(text: &str) -> Vec<&str> {
        let mut rest = text;
        let mut tokens = Vec::new();
        while !rest.is_empty() {
            let (token, after) = rest.split_at(if rest.starts_with('%') { 3 } else { 1 });
            tokens.push(token);
            rest = after;
        }
        tokens
    }

    fn brute_force_tokens(pattern: &[&str], text: &[&str]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((&"*", rest)) => {
                (0..=text.len()).any(|skip| brute_force_tokens(rest, &text[skip..]))
            }
            Some((token, rest)) => text
                .split_first()
                .is_some_and(|(first, text)| first == token && brute_force_tokens(rest, text)),
        }
    }

    proptest! {
        #[test]
        fn escaped_text_matches_by_whole_escapes(
            pattern in "(2|F|%2F|%22|\\*){0,7}",
            text in "(2|F|%2F|%22){0,7}",
        ) {
            let matches = match Text::parse(&pattern) {
                Text::Exact(exact) => *exact == *text.as_bytes(),
                Text::Wild(wildcard) => wildcard.matches_escaped(text.as_bytes()),
            };
            prop_assert_eq!(matches, brute_force_tokens(&tokens(&pattern), &tokens(&text)));
        }
    }

    #[test]
    fn backslash_escapes_a_star() {
        assert!(matches(r"a\*b", b"a*b") && !matches(r"a\*b", b"axb"));
        assert!(matches(r"a\\*", br"a\xyz") && matches(r"a\b", br"a\b"));
    }

    #[test]
    fn hostile_patterns_take_linear_time() {
        let (pattern, text) = ("*a".repeat(500) + "*b", "a".repeat(1_000_000));
        assert!(!matches(&pattern, text.as_bytes()));
        let pattern = format!("*{}b*", "a".repeat(1000));
        assert!(!matches(&pattern, text.as_bytes()));
    }
}
