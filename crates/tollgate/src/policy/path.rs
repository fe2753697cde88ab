//! Patterns with `*`, `{id}` and `**` for paths and Envoy descriptors.

use super::wildcard::{Literal, Text, Wildcard};

/// The maximum number of segments in a pattern, which bounds the cost of a match.
const MAX_SEGMENTS: usize = 64;

/// A path pattern: `*` matches any characters within one segment, `{id}` one non-empty segment, `**` any
/// number of segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
    segments: Vec<Segment>,
    syntax: Syntax,
}

/// The values that a pattern is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// Paths, which start with `/`.
    Path,
    /// Descriptors: percent-escaped entries `key=value`, joined by `/`.
    Descriptor,
}

impl Syntax {
    /// Returns the segments of a value as one text, or why a pattern is invalid.
    fn strip(self, text: &str) -> Result<&str, &'static str> {
        match self {
            Self::Path => {
                let path = text.strip_prefix('/').ok_or("a path must start with /")?;
                if path.contains(['?', '#']) {
                    return Err(
                        "a path must not contain ? or #: requests are matched without the query",
                    );
                }
                Ok(path)
            }
            Self::Descriptor if is_escaped(text) => Ok(text),
            Self::Descriptor => {
                Err("a descriptor must be key=value entries joined by /, in which \
                                     other characters than letters, digits and -._~ are \
                                     percent-escaped, as in path=%2Fsearch")
            }
        }
    }

    /// Returns the segments of a request's value, or `None` if it is a path that does not start with `/`.
    pub(super) fn segments(self, value: &[u8]) -> Option<impl Iterator<Item = &[u8]> + Clone> {
        let value = match self {
            Self::Path => value.strip_prefix(b"/")?,
            Self::Descriptor => value,
        };
        Some(value.split(|byte| *byte == b'/'))
    }
}

/// Returns whether a pattern can match the fact `descriptor`, whose other characters are escaped as `%2F`.
fn is_escaped(pattern: &str) -> bool {
    let mut pieces = pattern.split('%');
    let is_plain = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~=/*{}".contains(&byte))
    };
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    let is_escape = |text: &str| {
        let digits = text.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(|byte| is_digit(*byte))) && is_plain(text)
    };
    pieces.next().is_some_and(is_plain) && pieces.all(is_escape)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Literal(Literal),
    Wild(Wildcard),
    /// `{id}`.
    NonEmpty,
    /// `**`.
    Rest,
}

/// A parsed path: an exact value, or a pattern if it contains wildcards.
pub(super) enum Path {
    Exact(Literal),
    Pattern(PathPattern),
}

impl Path {
    pub(super) fn parse(text: &str, syntax: Syntax) -> Result<Self, &'static str> {
        let path = syntax.strip(text)?;
        let segments = path.split('/').map(Segment::parse).collect::<Result<Vec<_>, _>>()?;
        if segments.len() > MAX_SEGMENTS {
            return Err("must have at most 64 segments");
        }
        let mut exact = Literal::new();
        for (position, segment) in segments.iter().enumerate() {
            let Segment::Literal(literal) = segment else {
                return Ok(Self::Pattern(PathPattern { segments, syntax }));
            };
            if position > 0 || syntax == Syntax::Path {
                exact.push(b'/');
            }
            exact.extend_from_slice(literal);
        }
        Ok(Self::Exact(exact))
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "**" {
            return Ok(Self::Rest);
        }
        if text.contains("**") {
            return Err("** must be a whole segment, as in /a/**");
        }
        let unescaped = text.replace("\\\\", "").replace("\\{", "").replace("\\}", "");
        if unescaped.contains(['{', '}']) {
            let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            return match name {
                Some(name) if !name.is_empty() && !name.contains(['{', '}', '*']) => {
                    Ok(Self::NonEmpty)
                }
                _ => Err("{name} must be a whole segment, as in /users/{id}"),
            };
        }
        Ok(match Text::parse(text) {
            Text::Exact(literal) => Self::Literal(literal),
            Text::Wild(wildcard) => Self::Wild(wildcard),
        })
    }

    fn matches(&self, text: &[u8], syntax: Syntax) -> bool {
        match self {
            Self::Literal(literal) => **literal == *text,
            Self::Wild(wildcard) if syntax == Syntax::Descriptor => wildcard.matches_escaped(text),
            Self::Wild(wildcard) => wildcard.matches(text),
            Self::NonEmpty => !text.is_empty(),
            Self::Rest => true,
        }
    }
}

impl PathPattern {
    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub(super) const fn syntax(&self) -> Syntax {
        self.syntax
    }

    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let Some(mut input) = self.syntax.segments(path) else { return false };
        let mut pattern = self.segments.as_slice();
        // On a mismatch only the last `**` needs to consume one more segment: earlier ones already matched
        // with the fewest segments.
        let mut last_rest = None;
        loop {
            match pattern.split_first() {
                Some((Segment::Rest, [])) => return true,
                Some((Segment::Rest, after)) => {
                    last_rest = Some((after, input.clone()));
                    pattern = after;
                    continue;
                }
                Some((segment, after)) => {
                    let mut ahead = input.clone();
                    if ahead.next().is_some_and(|text| segment.matches(text, self.syntax)) {
                        (input, pattern) = (ahead, after);
                        continue;
                    }
                }
                None if input.clone().next().is_none() => return true,
                None => {}
            }
            let Some((after, from)) = &mut last_rest else { return false };
            if from.next().is_none() {
                return false;
            }
            (input, pattern) = (from.clone(), after);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Path, Segment, Syntax};

    fn matches(pattern: &str, path: &str) -> bool {
        matches_as(Syntax::Path, pattern, path)
    }

    fn matches_as(syntax: Syntax, pattern: &str, path: &str) -> bool {
        match Path::parse(pattern, syntax).unwrap() {
            Path::Exact(exact) => *exact == *path.as_bytes(),
            Path::Pattern(pattern) => pattern.matches(path.as_bytes()),
        }
    }

    /// Reference implementation: tries every number of segments for every `**`.
    fn brute_force(pattern: &[Segment], path: &[&[u8]]) -> bool {
        match pattern.split_first() {
            None => path.is_empty(),
            Some((Segment::Rest, after)) => {
                (0..=path.len()).any(|skip| brute_force(after, &path[skip..]))
            }
            Some((segment, after)) => path.split_first().is_some_and(|(first, rest)| {
                segment.matches(first, Syntax::Path) && brute_force(after, rest)
            }),
        }
    }

    proptest! {
        #[test]
        fn matches_like_the_brute_force_search(
            pattern in "(/(a|b|\\*|a\\*|\\{id\\}|\\*\\*)){1,6}",
            path in "(/(a|b|ab|)){1,7}",
        ) {
            let path_segments: Vec<_> = Syntax::Path.segments(path.as_bytes()).unwrap().collect();
            let expected = match Path::parse(&pattern, Syntax::Path).unwrap() {
                Path::Exact(exact) => *exact == *path.as_bytes(),
                Path::Pattern(pattern) => brute_force(pattern.segments(), &path_segments),
            };
            prop_assert_eq!(matches(&pattern, &path), expected);
        }
    }

    #[test]
    fn wildcards_match_within_and_across_segments() {
        for (pattern, matching, not_matching) in [
            ("/a/**", &["/a", "/a/", "/a/b", "/a/b/c"][..], &["/", "/ab", "/b/a", "a/b"][..]),
            ("/a/*", &["/a/b", "/a/"], &["/a", "/a/b/c"]),
            ("/a/{id}", &["/a/b"], &["/a/", "/a", "/a/b/"]),
            ("/a/*.png", &["/a/x.png", "/a/.png"], &["/a/x.jpg", "/a/b/x.png"]),
            ("/**/c", &["/c", "/a/c", "/a/b/c", "/c/c"], &["/", "/c/a"]),
            ("/**/a/**/b", &["/a/b", "/x/a/y/b", "/a/a/b/b"], &["/b/a", "/a"]),
            ("/**", &["/", "/a", "//"], &["", "*"]),
            ("/a", &["/a"], &["/a/", "//a", "/A"]),
            (r"/\{x\}/\*", &["/{x}/*"], &["/x/y"]),
        ] {
            for path in matching {
                assert!(matches(pattern, path), "{pattern} {path}");
            }
            for path in not_matching {
                assert!(!matches(pattern, path), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn descriptors_match_by_entry() {
        for (pattern, matching, not_matching) in [
            ("a=b", &["a=b"][..], &["/a=b", "a=b/c=d", "a=", "a=B"][..]),
            ("a=*", &["a=", "a=b", "a=%2F"], &["a%3Db=c", "a=b/c=d", "ab=c"]),
            ("a=*2F", &["a=2F", "a=%2F2F"], &["a=%2F", "a=%2F%2F"]),
            ("a=*2*", &["a=12", "a=%222"], &["a=%22", "a=%2F"]),
            ("a=*/b=c*", &["a=/b=c", "a=x/b=cd"], &["a=x", "a=x/b=c/d=e", "a=x/y/b=c"]),
            ("a=b/**", &["a=b", "a=b/c=d"], &["a=bc", "c=d/a=b"]),
        ] {
            for descriptor in matching {
                assert!(
                    matches_as(Syntax::Descriptor, pattern, descriptor),
                    "{pattern} {descriptor}"
                );
            }
            for descriptor in not_matching {
                assert!(
                    !matches_as(Syntax::Descriptor, pattern, descriptor),
                    "{pattern} {descriptor}"
                );
            }
        }
    }

    #[test]
    fn descriptor_patterns_must_be_escaped() {
        for pattern in ["a=b c", "a=%2f", "a=%2", "a=%", "a=é", r"a=\*", "a=b?c"] {
            assert!(Path::parse(pattern, Syntax::Descriptor).is_err(), "{pattern}");
        }
    }
}
