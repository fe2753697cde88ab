//! Parses the `match` of a rule.

use crate::net;
use crate::policy::condition::{Alternative, Condition};
use crate::policy::digest;
use crate::policy::error::{FieldError, FieldErrors, PolicyErrorKind};
use crate::policy::fact_name::{FactName, Meaning};
use crate::policy::node_ref::{NodeRef, quoted};
use crate::policy::path::Path;
use crate::policy::suggestion::did_you_mean;
use crate::policy::tiers::Tiers;
use crate::policy::wildcard::Text;
use crate::request::{MAX_FACT_LENGTH, is_fact_name};

/// The fields of `match`.
pub(super) const MATCH: &[&str] = &[
    "method", "path", "host", "client", "user", "api_key", "tier", "tenant", "ip", "headers",
    "facts",
];

/// Parses all conditions, in file order. Invalid ones are recorded in `errors` and left out.
pub(super) fn parse(
    map: NodeRef<'_>,
    tiers: Option<&Tiers>,
    errors: &mut FieldErrors,
) -> Vec<Condition> {
    let Some(fields) = map.known_fields(MATCH, errors) else { return Vec::new() };
    let mut conditions = Vec::new();
    for entry in fields.entries() {
        let nested = matches!(entry.name(), "headers" | "facts");
        let entries = if nested { errors.record(entry.entries()) } else { Some(vec![*entry]) };
        for fact in entries.unwrap_or_default() {
            let names = match entry.name() {
                "headers" => {
                    let name = fact.name().to_ascii_lowercase();
                    (format!("headers.{name}"), format!("header:{name}"))
                }
                "facts" => (format!("facts.{}", fact.name()), fact.name().to_owned()),
                name => (name.to_owned(), name.to_owned()),
            };
            conditions.extend(condition(fact, (&names.0, &names.1), tiers, errors));
        }
    }
    conditions
}

fn condition(
    entry: NodeRef<'_>,
    (name, fact): (&str, &str),
    tiers: Option<&Tiers>,
    errors: &mut FieldErrors,
) -> Option<Condition> {
    if !is_fact_name(fact) {
        let error = entry.name_error(PolicyErrorKind::Value, invalid_fact_name(fact));
        return errors.record(Err(error));
    }
    let fact = FactName::new(fact);
    let (mut written, mut values) = (Vec::new(), Vec::new());
    for value in errors.record(entry.one_or_more())? {
        values.extend(errors.record(alternative(value, &fact, tiers)));
        written.extend(value.text().ok().map(Into::into));
    }
    Some(Condition::new(name, fact, written, values))
}

/// The error message for an invalid fact name.
pub(super) fn invalid_fact_name(name: &str) -> String {
    let name = quoted(name);
    format!("{name} is not a valid fact name; use 1 to 64 printable ASCII characters, no spaces")
}

/// Parses one value, depending on the meaning of the fact.
fn alternative(
    value: NodeRef<'_>,
    fact: &FactName,
    tiers: Option<&Tiers>,
) -> Result<Alternative, FieldError> {
    if fact.meaning() == Meaning::ApiKey {
        return digest(value).map(|digest| Alternative::Exact((&*digest).into()));
    }
    let text = fact_text(value)?;
    match fact.meaning() {
        // Any value, so that a rule can match requests with the header.
        Meaning::SecretHeader(_) if matches!(text, "*" | "sha256:*") => Ok(text_alternative(text)),
        Meaning::SecretHeader(_) => {
            header_digest(value).map(|digest| Alternative::Exact((&*digest).into()))
        }
        Meaning::Path | Meaning::Descriptor => match Path::parse(text, fact.syntax()) {
            Ok(Path::Exact(path)) => Ok(Alternative::Exact(path)),
            Ok(Path::Pattern(pattern)) => Ok(Alternative::Path(pattern)),
            Err(reason) => Err(value.invalid(reason)),
        },
        Meaning::Ip => {
            net::parse(text).map(Alternative::Net).map_err(|reason| value.invalid(reason))
        }
        Meaning::Method => Ok(text_alternative(&text.to_ascii_uppercase())),
        Meaning::Host if has_port(text) => {
            Err(value.invalid("remove the port; hosts are matched without their port"))
        }
        Meaning::Host => Ok(text_alternative(&text.to_ascii_lowercase())),
        Meaning::Tier => {
            check_tier(value, text, tiers)?;
            Ok(text_alternative(text))
        }
        _ => Ok(text_alternative(text)),
    }
}

fn text_alternative(text: &str) -> Alternative {
    match Text::parse(text) {
        Text::Exact(text) => Alternative::Exact(text),
        Text::Wild(wildcard) => Alternative::Text(wildcard),
    }
}

/// Returns non-empty text of at most [`MAX_FACT_LENGTH`] bytes.
pub(super) fn fact_text(value: NodeRef<'_>) -> Result<&str, FieldError> {
    match value.non_empty_text()? {
        text if text.len() <= MAX_FACT_LENGTH => Ok(text),
        _ => Err(value.invalid("must be at most 1024 bytes")),
    }
}

/// Parses the digest of an API key. The error does not quote the value, because it may be a plaintext key.
pub(super) fn digest(value: NodeRef<'_>) -> Result<Box<[u8]>, FieldError> {
    digest::parse(value.text()?.as_bytes()).ok_or_else(|| {
        value.invalid(
            "must be \"sha256:\" followed by the 64 hexadecimal digits of the key's SHA-256, not the \
             key itself; compute the digits with: printf %s \"$KEY\" | sha256sum",
        )
    })
}

/// Parses the digest of a header with a secret, which the error does not quote.
fn header_digest(value: NodeRef<'_>) -> Result<Box<[u8]>, FieldError> {
    digest::parse(value.text()?.as_bytes()).ok_or_else(|| {
        value.invalid(
            "the header contains a secret; write \"*\" for any value, or \"sha256:\" and the 64 hexadecimal digits \
             of its SHA-256, which this command computes: printf %s \"$VALUE\" | sha256sum",
        )
    })
}

fn check_tier(value: NodeRef<'_>, text: &str, tiers: Option<&Tiers>) -> Result<(), FieldError> {
    match tiers {
        Some(tiers) if !tiers.is_empty() && !text.contains('*') => {
            if tiers.names().any(|name| name == text) {
                return Ok(());
            }
            let hint = did_you_mean(text, tiers.names());
            Err(value.invalid(format!("tier {} is not defined in tiers{hint}", quoted(text))))
        }
        _ => Ok(()),
    }
}

/// Returns whether a host has a port: exactly one colon outside brackets. Several colons are an IPv6 address.
fn has_port(host: &str) -> bool {
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after.matches(':').count() == 1
}
