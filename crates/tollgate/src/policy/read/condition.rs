//! What a rule matches.

use crate::facts::is_fact_name;
use crate::net;
use crate::policy::condition::{Alternative, Condition};
use crate::policy::cursor::{Cursor, shown};
use crate::policy::digest;
use crate::policy::error::{Flaw, PolicyErrorKind};
use crate::policy::fact_name::{FactName, Meaning};
use crate::policy::nearest::did_you_mean;
use crate::policy::path::Path;
use crate::policy::tiers::Tiers;
use crate::policy::wildcard::Text;

/// The fields of `match`.
pub(super) const MATCH: &[&str] = &[
    "method", "path", "host", "client", "user", "api_key", "tier", "tenant", "ip", "headers",
    "facts",
];

/// The longest value, in bytes: no fact is longer.
const MAX_VALUE: usize = 1024;

/// Reads all conditions, in the file's order.
pub(super) fn read(map: Cursor<'_>, tiers: Option<&Tiers>) -> Result<Vec<Condition>, Flaw> {
    let mut conditions = Vec::new();
    for entry in map.entries()? {
        entry.known(MATCH)?;
        match entry.name() {
            "headers" => {
                for header in entry.entries()? {
                    conditions.push(of_header(header, tiers)?);
                }
            }
            "facts" => {
                for fact in entry.entries()? {
                    let name = fact.name();
                    conditions.push(one(fact, &format!("facts.{name}"), name, tiers)?);
                }
            }
            name => conditions.push(one(entry, name, name, tiers)?),
        }
    }
    Ok(conditions)
}

fn of_header(header: Cursor<'_>, tiers: Option<&Tiers>) -> Result<Condition, Flaw> {
    let name = header.name().to_ascii_lowercase();
    one(header, &format!("headers.{name}"), &format!("header:{name}"), tiers)
}

fn one(
    entry: Cursor<'_>,
    name: &str,
    fact: &str,
    tiers: Option<&Tiers>,
) -> Result<Condition, Flaw> {
    if !is_fact_name(fact) {
        let reason = format!("{} cannot be the name of a fact", shown(fact));
        return Err(entry.misnamed(PolicyErrorKind::Value, reason));
    }
    let fact = FactName::new(fact);
    let (mut written, mut values) = (Vec::new(), Vec::new());
    for value in entry.one_or_more()? {
        values.push(alternative(value, &fact, tiers)?);
        written.push(value.text()?.into());
    }
    Ok(Condition::new(name, fact, written, values))
}

/// One value. What a fact means decides how it is read.
fn alternative(
    value: Cursor<'_>,
    fact: &FactName,
    tiers: Option<&Tiers>,
) -> Result<Alternative, Flaw> {
    if fact.meaning() == Meaning::ApiKey {
        return digest(value).map(|digest| Alternative::Exact((&*digest).into()));
    }
    let text = short_text(value)?;
    match fact.meaning() {
        Meaning::Path => match Path::parse(text) {
            Ok(Path::Exact(path)) => Ok(Alternative::Exact(path)),
            Ok(Path::Pattern(pattern)) => Ok(Alternative::Path(pattern)),
            Err(reason) => Err(value.wrong(reason)),
        },
        Meaning::Ip => net::parse(text).map(Alternative::Net).map_err(|reason| value.wrong(reason)),
        Meaning::Method => Ok(of_text(&text.to_ascii_uppercase())),
        Meaning::Host if has_port(text) => Err(value.wrong("a host is matched without its port")),
        Meaning::Host => Ok(of_text(&text.to_ascii_lowercase())),
        Meaning::Tier => {
            check_tier(value, text, tiers)?;
            Ok(of_text(text))
        }
        _ => Ok(of_text(text)),
    }
}

fn of_text(text: &str) -> Alternative {
    match Text::parse(text) {
        Text::Exact(text) => Alternative::Exact(text),
        Text::Wild(wildcard) => Alternative::Text(wildcard),
    }
}

/// Text of a length that facts can have.
pub(super) fn short_text(value: Cursor<'_>) -> Result<&str, Flaw> {
    match value.filled()? {
        text if text.len() <= MAX_VALUE => Ok(text),
        _ => Err(value.wrong("is longer than 1024 bytes")),
    }
}

/// The digest of an API key. Anything else may be a key in clear, and is not repeated.
pub(super) fn digest(value: Cursor<'_>) -> Result<Box<[u8]>, Flaw> {
    digest::parse(value.text()?.as_bytes()).ok_or_else(|| {
        value.wrong(
            "must be sha256: and the 64 hexadecimal digits of the key's SHA-256, never the key \
             itself (printf %s \"$KEY\" | sha256sum)",
        )
    })
}

fn check_tier(value: Cursor<'_>, text: &str, tiers: Option<&Tiers>) -> Result<(), Flaw> {
    match tiers {
        Some(tiers) if !tiers.is_empty() && !text.contains('*') => {
            if tiers.names().any(|name| name == text) {
                return Ok(());
            }
            let hint = did_you_mean(text, tiers.names());
            Err(value.wrong(format!("there is no tier {} in tiers{hint}", shown(text))))
        }
        _ => Ok(()),
    }
}

/// A colon outside brackets is that of a port, unless there are several: then it is an address.
fn has_port(host: &str) -> bool {
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after.matches(':').count() == 1
}
