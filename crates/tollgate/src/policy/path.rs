//! Patterns of paths, segment by segment.

use super::wildcard::{Literal, Text, Wildcard};

/// The most segments a pattern may have, which bounds what matching costs.
const MAX_SEGMENTS: usize = 64;

/// A path in which `*` stands for any characters of one segment, `{id}` for one segment that is not
/// empty, and `**` for any number of segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Literal(Literal),
    Wild(Wildcard),
    Filled,
    Rest,
}

/// What a path with or without wildcards stands for.
pub(super) enum Path {
    Exact(Literal),
    Pattern(PathPattern),
}

impl Path {
    /// Reads a path, or says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let Some(path) = text.strip_prefix('/') else { return Err("a path must begin with /") };
        if path.contains(['?', '#']) {
            return Err("a path ends before ? and #, so they cannot be matched");
        }
        let segments = path.split('/').map(Segment::parse).collect::<Result<Vec<_>, _>>()?;
        if segments.len() > MAX_SEGMENTS {
            return Err("a path may have at most 64 segments");
        }
        let mut exact = Literal::new();
        for segment in &segments {
            let Segment::Literal(literal) = segment else {
                return Ok(Self::Pattern(PathPattern { segments }));
            };
            exact.push(b'/');
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
            return Err("** must be a segment of its own, as in /a/**");
        }
        let unescaped = text.replace("\\\\", "").replace("\\{", "").replace("\\}", "");
        if unescaped.contains(['{', '}']) {
            let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            return match name {
                Some(name) if !name.is_empty() && !name.contains(['{', '}', '*']) => {
                    Ok(Self::Filled)
                }
                _ => Err("{name} must be a segment of its own, as in /users/{id}"),
            };
        }
        Ok(match Text::parse(text) {
            Text::Exact(literal) => Self::Literal(literal),
            Text::Wild(wildcard) => Self::Wild(wildcard),
        })
    }

    fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Literal(literal) => **literal == *text,
            Self::Wild(wildcard) => wildcard.matches(text),
            Self::Filled => !text.is_empty(),
            Self::Rest => true,
        }
    }
}

impl PathPattern {
    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let Some(mut left) = segments(path) else { return false };
        let mut wanted = self.segments.as_slice();
        // Only the last `**` ever needs to take more: the ones before it have all they must have.
        let mut last_rest = None;
        loop {
            match wanted.split_first() {
                Some((Segment::Rest, [])) => return true,
                Some((Segment::Rest, after)) => {
                    last_rest = Some((after, left.clone()));
                    wanted = after;
                    continue;
                }
                Some((segment, after)) => {
                    let mut ahead = left.clone();
                    if ahead.next().is_some_and(|text| segment.matches(text)) {
                        (left, wanted) = (ahead, after);
                        continue;
                    }
                }
                None if left.clone().next().is_none() => return true,
                None => {}
            }
            let Some((after, from)) = &mut last_rest else { return false };
            if from.next().is_none() {
                return false;
            }
            (left, wanted) = (from.clone(), after);
        }
    }
}

/// The segments of a request's path; none if it does not begin with `/`.
pub(super) fn segments(path: &[u8]) -> Option<impl Iterator<Item = &[u8]> + Clone> {
    path.strip_prefix(b"/").map(|path| path.split(|byte| *byte == b'/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Path, Segment, segments};

    fn matches(pattern: &str, path: &str) -> bool {
        match Path::parse(pattern).unwrap() {
            Path::Exact(exact) => *exact == *path.as_bytes(),
            Path::Pattern(pattern) => pattern.matches(path.as_bytes()),
        }
    }

    /// By trying every number of segments for every `**`.
    fn plainly(wanted: &[Segment], path: &[&[u8]]) -> bool {
        match wanted.split_first() {
            None => path.is_empty(),
            Some((Segment::Rest, after)) => {
                (0..=path.len()).any(|skip| plainly(after, &path[skip..]))
            }
            Some((segment, after)) => path
                .split_first()
                .is_some_and(|(first, rest)| segment.matches(first) && plainly(after, rest)),
        }
    }

    proptest! {
        #[test]
        fn patterns_match_as_if_every_way_was_tried(
            pattern in "(/(a|b|\\*|a\\*|\\{id\\}|\\*\\*)){1,6}",
            path in "(/(a|b|ab|)){1,7}",
        ) {
            let path_segments: Vec<_> = segments(path.as_bytes()).unwrap().collect();
            let expected = match Path::parse(&pattern).unwrap() {
                Path::Exact(exact) => *exact == *path.as_bytes(),
                Path::Pattern(pattern) => plainly(pattern.segments(), &path_segments),
            };
            prop_assert_eq!(matches(&pattern, &path), expected);
        }
    }

    #[test]
    fn segments_are_matched_one_by_one() {
        for (pattern, yes, no) in [
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
            for path in yes {
                assert!(matches(pattern, path), "{pattern} {path}");
            }
            for path in no {
                assert!(!matches(pattern, path), "{pattern} {path}");
            }
        }
    }
}
