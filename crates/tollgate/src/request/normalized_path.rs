//! Normalization of request paths, so that no spelling of a path misses its rule.

use std::borrow::Cow;

use thiserror::Error;

use super::facts::MAX_FACT_LENGTH;

/// Normalizes the path of a request target (RFC 9112), as a proxy forwards it: removes the query, decodes percent-escapes
/// of unreserved characters, writes all other escapes in upper case, escapes bytes that are not printable ASCII, merges
/// slashes and removes dot segments.
///
/// Escapes of reserved characters stay: `/a%2Fb` has one segment. Of an absolute URI, the path is returned. An empty path
/// is `/` (RFC 3986, section 6.2.3). `*` is returned unchanged.
///
/// ```
/// use tollgate::normalize_path;
///
/// for target in ["/api/users", "/%61pi/users?id=1", "//api//users", "/x/../api/./users", "/x/%2e%2E/api/users"] {
///     assert_eq!(normalize_path(target.as_bytes())?, &b"/api/users"[..]);
/// }
/// assert!(normalize_path(b"/api%zz").is_err());
/// # Ok::<(), tollgate::PathError>(())
/// ```
///
/// # Errors
/// The target is not a path, has an invalid escape, or its normalized path is longer than [`MAX_FACT_LENGTH`].
pub fn normalize_path(target: &[u8]) -> Result<Cow<'_, [u8]>, PathError> {
    let path = target.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
    match path {
        b"" => return Ok(Cow::Borrowed(b"/")),
        b"*" => return Ok(Cow::Borrowed(path)),
        _ => {}
    }
    let path = if path.starts_with(b"/") { path } else { path_of_uri(path)? };
    let normalized = match is_normalized(path) {
        true => Cow::Borrowed(path),
        false => Cow::Owned(without_dot_segments(&decode(path)?)),
    };
    if normalized.len() > MAX_FACT_LENGTH { Err(PathError::TooLong) } else { Ok(normalized) }
}

/// A path that cannot be normalized. The request must be refused: without its path it would miss its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path is longer than [`MAX_FACT_LENGTH`].
    #[error("the path is longer than 1024 bytes")]
    TooLong,
    /// The target is not a path, or has an invalid percent-escape.
    #[error("the path is invalid: it must start with / and have valid percent-escapes")]
    Invalid,
}

/// Returns the path of `http://host/path`.
fn path_of_uri(uri: &[u8]) -> Result<&[u8], PathError> {
    let scheme = uri.windows(3).position(|bytes| bytes == b"://").ok_or(PathError::Invalid)?;
    let is_scheme_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let (name, rest) = uri.split_at_checked(scheme).ok_or(PathError::Invalid)?;
    if name.is_empty() || !name.iter().all(is_scheme_byte) {
        return Err(PathError::Invalid);
    }
    let authority = rest.get(3..).unwrap_or_default();
    let path = authority.iter().position(|byte| *byte == b'/').and_then(|at| authority.get(at..));
    Ok(path.unwrap_or(b"/"))
}

/// Returns whether a path surely is normalized. Most paths are, and are not copied.
fn is_normalized(path: &[u8]) -> bool {
    let is_plain = path.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'%');
    let may_change = |pair: &[u8]| matches!(pair, b"//" | b"/.");
    is_plain && !path.windows(2).any(may_change)
}

/// Decodes escapes of unreserved characters. All other bytes that are not printable are escaped.
fn decode(path: &[u8]) -> Result<Vec<u8>, PathError> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let byte = if *byte == b'%' {
            let (digits, after) = after.split_first_chunk::<2>().ok_or(PathError::Invalid)?;
            rest = after;
            let byte = byte_of(*digits).ok_or(PathError::Invalid)?;
            if !is_unreserved(byte) {
                escape(&mut decoded, byte);
                continue;
            }
            byte
        } else {
            *byte
        };
        if byte.is_ascii_graphic() {
            decoded.push(byte);
        } else {
            escape(&mut decoded, byte);
        }
    }
    Ok(decoded)
}

fn byte_of(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn escape(path: &mut Vec<u8>, byte: u8) {
    let digit = |nibble: u8| match nibble {
        0..=9 => b'0' + nibble,
        _ => b'A' + nibble - 10,
    };
    path.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
}

/// Merges slashes and removes the segments `.` and `..`. A `..` at the start is dropped.
fn without_dot_segments(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut is_directory = false;
    for segment in path.split(|byte| *byte == b'/') {
        is_directory = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let mut normalized = Vec::with_capacity(path.len());
    for segment in &segments {
        normalized.push(b'/');
        normalized.extend_from_slice(segment);
    }
    if is_directory || segments.is_empty() {
        normalized.push(b'/');
    }
    normalized
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_FACT_LENGTH, PathError, normalize_path};

    fn normalized(target: &str) -> Result<String, PathError> {
        let path = normalize_path(target.as_bytes())?;
        Ok(String::from_utf8(path.into_owned()).unwrap())
    }

    #[test]
    fn spellings_of_a_path_are_one_path() {
        for (target, path) in [
            ("/api", "/api"),
            ("/%61pi", "/api"),
            ("/%61%70%69?x=%zz", "/api"),
            ("//api", "/api"),
            ("///api//", "/api/"),
            ("/x/../api", "/api"),
            ("/../../api", "/api"),
            ("/x/%2e%2E/api", "/api"),
            ("/./api/.", "/api/"),
            ("/api/x/..", "/api/"),
            ("/api/%2e", "/api/"),
            ("/x//../api", "/api"),
            ("/..", "/"),
            ("/?q", "/"),
            ("/api#f", "/api"),
            ("http://h.example/api?q", "/api"),
            ("HTTP://h.example", "/"),
            ("http://h.example?q=/api", "/"),
            ("", "/"),
            ("?q=/api", "/"),
            ("#f", "/"),
            ("*", "*"),
            ("/a%2fb%2F", "/a%2Fb%2F"),
            ("/a%00%25", "/a%00%25"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/a b", "/a%20b"),
            ("/.hidden/..x/x..", "/.hidden/..x/x.."),
        ] {
            assert_eq!(normalized(target).as_deref(), Ok(path), "{target}");
        }
    }

    #[test]
    fn invalid_targets_are_refused() {
        for target in ["api", "/%", "/%4", "/%zz", "/%%61", "/a%6", "://x/", "h.example:443"] {
            assert_eq!(normalized(target), Err(PathError::Invalid), "{target}");
        }
        let longest = format!("/{}", "a".repeat(MAX_FACT_LENGTH - 1));
        assert_eq!(normalized(&longest), Ok(longest.clone()));
        assert_eq!(normalized(&format!("{longest}a")), Err(PathError::TooLong));
        assert_eq!(normalized(&format!("{longest}?{longest}")), Ok(longest));
    }

    proptest! {
        #[test]
        fn normalizing_twice_changes_nothing(target in "/([a./]|%2[eEfF]|%61|%C3|\u{e9}){0,12}") {
            let once = normalized(&target).unwrap();
            prop_assert_eq!(normalized(&once), Ok(once.clone()));
            prop_assert!(once.starts_with('/') && !once.contains("//"), "{}", once);
            prop_assert!(once.split('/').all(|segment| !matches!(segment, "." | "..")), "{}", once);
        }
    }
}
