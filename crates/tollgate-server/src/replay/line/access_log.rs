//! Common and combined log format, also with a last field for X-Forwarded-For.

use super::payload::{FactNames, Payload};
use super::{LineError, cost_field, forwarded, time};

/// Splits a text after the first `byte`.
fn split(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let position = text.iter().position(|other| *other == byte)?;
    let (before, from) = text.split_at_checked(position)?;
    Some((before, from.get(1..)?))
}

/// Reads a quoted field, in which a backslash escapes the next character, and returns the rest.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start().strip_prefix(b"\"")?;
    let mut is_escaped = false;
    let end = text.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    })?;
    let (field, from) = text.split_at_checked(end)?;
    Some((field, from.get(1..)?))
}

/// Parses `ip ident user [date] "request" status bytes`, then optionally `"referer" "agent"` and `"forwarded"`.
pub(super) fn parse(line: &[u8], names: &FactNames, facts: &mut Payload) -> Result<u64, LineError> {
    let line = line.trim_ascii();
    let (ip, rest) = split(line, b' ').ok_or("the line has no address, date and request")?;
    let (_, rest) = split(rest, b' ').ok_or("the line has no date in brackets")?;
    let (user, rest) = split(rest, b'[').ok_or("the line has no date in brackets")?;
    let (date, rest) = split(rest, b']').ok_or("the line has no date in brackets")?;
    let at = time::access_log(date)?;
    let (request, rest) = quoted(rest).ok_or("the line has no request in quotes")?;
    let (size, rest) = status_and_size(rest).ok_or("the line has no status after the request")?;
    let (agent, forwarded) = combined(rest)?;
    let client = forwarded.and_then(forwarded::client).unwrap_or(ip);
    facts.put(FactNames::IP, client)?;
    let (method, target) = request_line(request).ok_or(NO_REQUEST)?;
    facts.put_request(method, target)?;
    for (index, _) in names.iter().filter(|(_, name)| cost_field::unit(name).is_some()) {
        facts.put(index, cost_field::amount(size)?.unwrap_or_default())?;
    }
    if let Some(index) = names.index("user")
        && user.trim_ascii() != b"-"
    {
        facts.put(index, user.trim_ascii())?;
    }
    if let (Some(index), Some(agent)) = (names.index("header:user-agent"), agent)
        && agent != b"-"
    {
        facts.put(index, agent)?;
    }
    Ok(at)
}

pub(super) const NO_REQUEST: LineError = "the request is not METHOD PATH PROTOCOL";

/// Splits the status and the size of the response from the rest of a line. Returns the size and the rest.
fn status_and_size(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b" ")?;
    let (status, rest) = text.split_at_checked(3)?;
    let rest = rest.strip_prefix(b" ")?;
    let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    let (size, rest) = rest.split_at_checked(end)?;
    let is_number = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    (is_number(status) && (size == b"-" || is_number(size))).then_some((size, rest))
}

/// User agent, and addresses of X-Forwarded-For.
type CombinedFields<'l> = (Option<&'l [u8]>, Option<&'l [u8]>);

/// Reads the fields of the combined format: the user agent, and the addresses of X-Forwarded-For.
fn combined(rest: &[u8]) -> Result<CombinedFields<'_>, LineError> {
    if rest.trim_ascii().is_empty() {
        return Ok((None, None));
    }
    let invalid = "the fields after the status are not in quotes";
    let (_, rest) = quoted(rest).ok_or(invalid)?;
    let (agent, rest) = quoted(rest).ok_or(invalid)?;
    let forwarded = quoted(rest).map(|(forwarded, _)| forwarded);
    Ok((Some(agent), forwarded))
}

/// Splits `GET /path HTTP/1.1` into method and target.
pub(super) fn request_line(request: &[u8]) -> Option<(&[u8], &[u8])> {
    let (method, rest) = split(request, b' ')?;
    let end = rest.iter().rposition(|byte| *byte == b' ')?;
    let (target, protocol) = rest.split_at_checked(end)?;
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_graphic);
    (is_method && protocol.starts_with(b" HTTP/")).then_some((method, target))
}
