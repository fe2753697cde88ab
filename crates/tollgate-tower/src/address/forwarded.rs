//! The elements of `Forwarded` (RFC 7239): `for="[2001:db8::1]:80";proto=https, for=192.0.2.7`.

use std::borrow::Cow;
use std::net::IpAddr;

use super::node;

/// The last comma outside of quotes, read from the right. What proxies wrote has its quotes in pairs, so it
/// is read as they wrote it, whatever stands to the left.
pub(super) fn last_comma(line: &[u8]) -> Option<usize> {
    let mut is_quoted = false;
    line.iter().enumerate().rev().find_map(|(at, byte)| match byte {
        b'"' => {
            // From the right the first quote closes, and those that are escaped lie between.
            is_quoted = !is_quoted || is_escaped(line, at);
            None
        }
        b',' if !is_quoted => Some(at),
        _ => None,
    })
}

/// Whether an odd number of backslashes stands before it: of an even one each escapes another.
fn is_escaped(line: &[u8], at: usize) -> bool {
    let before = line.get(..at).unwrap_or_default();
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    !backslashes.is_multiple_of(2)
}

/// The address of an element's `for`. None if it has none, or several, or one that is no address.
pub(super) fn address(element: &[u8]) -> Option<IpAddr> {
    let mut rest = Some(std::str::from_utf8(element).ok()?);
    let mut found = None;
    while let Some(text) = rest {
        let (pair, after) = first_pair(text);
        rest = after;
        let pair = pair.trim_ascii();
        if pair.is_empty() {
            continue;
        }
        let (name, value) = pair.split_once('=')?;
        if name.eq_ignore_ascii_case("for") && found.replace(value).is_some() {
            return None;
        }
    }
    node::address(unquoted(found?)?.as_bytes())
}

/// The first pair of an element, and what comes after its semicolon.
fn first_pair(text: &str) -> (&str, Option<&str>) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = text.find(|letter| {
        let is_plain = !std::mem::take(&mut is_escaped);
        match letter {
            '\\' => is_escaped = is_quoted && is_plain,
            '"' if is_plain => is_quoted = !is_quoted,
            _ => {}
        }
        letter == ';' && !is_quoted
    });
    match end.and_then(|at| text.split_at_checked(at)) {
        Some((pair, after)) => (pair, after.strip_prefix(';')),
        None => (text, None),
    }
}

/// What a value means: a token itself, a quoted string what it quotes. None if its quotes are not in pairs.
fn unquoted(value: &str) -> Option<Cow<'_, str>> {
    let Some(rest) = value.strip_prefix('"') else { return Some(value.into()) };
    let quoted = rest.strip_suffix('"')?;
    if !quoted.contains(['\\', '"']) {
        return Some(quoted.into());
    }
    let mut letters = quoted.chars();
    let mut plain = String::with_capacity(quoted.len());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => plain.push(letters.next()?),
            '"' => return None,
            _ => plain.push(letter),
        }
    }
    Some(plain.into())
}
