//! Elements of the `Forwarded` header (RFC 7239): `for="[2001:db8::1]:80";proto=https, for=192.0.2.7`.

use std::borrow::Cow;
use std::net::IpAddr;

use super::hop_address;

/// Returns the position of the last comma outside quotes, reading from the right. Proxies write balanced quotes, so
/// their elements parse correctly whatever the client wrote to the left.
pub(super) fn last_comma(line: &[u8]) -> Option<usize> {
    let mut is_quoted = false;
    line.iter().enumerate().rev().find_map(|(at, byte)| match byte {
        b'"' => {
            // Read from the right, the first quote is the closing one; escaped quotes lie inside.
            is_quoted = !is_quoted || is_escaped(line, at);
            None
        }
        b',' if !is_quoted => Some(at),
        _ => None,
    })
}

/// Returns whether an odd number of backslashes precedes the position.
fn is_escaped(line: &[u8], at: usize) -> bool {
    let before = line.get(..at).unwrap_or_default();
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    !backslashes.is_multiple_of(2)
}

/// Returns the address in the element's `for` parameter. None if it is absent, repeated or not an address.
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
    hop_address::parse(unquoted(found?)?.as_bytes())
}

/// Splits off the first parameter of an element; also returns the rest after its semicolon.
fn first_pair(text: &str) -> (&str, Option<&str>) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = text.find(|char| {
        let is_plain = !std::mem::take(&mut is_escaped);
        match char {
            '\\' => is_escaped = is_quoted && is_plain,
            '"' if is_plain => is_quoted = !is_quoted,
            _ => {}
        }
        char == ';' && !is_quoted
    });
    match end.and_then(|at| text.split_at_checked(at)) {
        Some((pair, after)) => (pair, after.strip_prefix(';')),
        None => (text, None),
    }
}

/// Unquotes a value: a token is returned as is. None if the quotes are unbalanced.
fn unquoted(value: &str) -> Option<Cow<'_, str>> {
    let Some(rest) = value.strip_prefix('"') else { return Some(value.into()) };
    let quoted = rest.strip_suffix('"')?;
    if !quoted.contains(['\\', '"']) {
        return Some(quoted.into());
    }
    let mut chars = quoted.chars();
    let mut plain = String::with_capacity(quoted.len());
    while let Some(char) = chars.next() {
        match char {
            '\\' => plain.push(chars.next()?),
            '"' => return None,
            _ => plain.push(char),
        }
    }
    Some(plain.into())
}
