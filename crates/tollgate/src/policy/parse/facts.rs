//! Parses `facts`: the sources of facts.

use crate::policy::error::{FieldError, FieldErrors, PolicyErrorKind};
use crate::policy::fact_name::{FactName, Meaning};
use crate::policy::fact_spec::{FactSpec, SourceSpec, is_secret_header};
use crate::policy::node_ref::{NodeRef, quoted};
use crate::request::{ENTRY_PREFIX, MAX_FACTS, is_fact_name, lowercase_header};

use super::condition::invalid_fact_name;

/// The fields of a source.
pub(super) const SOURCE: &[&str] = &["header", "digest"];

/// The maximum number of sources of a fact.
const MAX_SOURCES: usize = 8;

/// Facts whose source is not a header: a policy cannot define them.
const FIXED: &[&str] =
    &["method", "path", "host", "ip", "domain", "descriptor", "descriptor_index"];
const FIXED_PREFIXES: &[&str] = &["header:", ENTRY_PREFIX];

/// Parses the facts, each with its sources. Invalid ones are recorded in `errors` and left out.
pub(super) fn parse(map: NodeRef<'_>, errors: &mut FieldErrors) -> Vec<FactSpec> {
    let entries = errors.record(map.entries()).unwrap_or_default();
    if entries.len() > MAX_FACTS {
        let error = map.error(PolicyErrorKind::TooLarge, "must define at most 32 facts");
        errors.record::<()>(Err(error));
        return Vec::new();
    }
    entries.into_iter().filter_map(|entry| errors.record(fact(entry))).collect()
}

fn fact(entry: NodeRef<'_>) -> Result<FactSpec, FieldError> {
    let name = entry.name();
    if !is_fact_name(name) {
        return Err(entry.name_error(PolicyErrorKind::Value, invalid_fact_name(name)));
    }
    let plain = lowercase_header(name.into());
    let has_fixed_prefix = FIXED_PREFIXES.iter().any(|prefix| plain.starts_with(prefix));
    if has_fixed_prefix || FIXED.contains(&name) {
        let reason = format!("the source of {} is fixed; define another fact", quoted(name));
        return Err(entry.name_error(PolicyErrorKind::Value, reason));
    }
    let (name, items) = (FactName::new(name), entry.list().unwrap_or_else(|_| vec![entry]));
    if !(1..=MAX_SOURCES).contains(&items.len()) {
        return Err(
            entry.invalid("must have 1 to 8 sources, such as [{ header: x-client-id }, ip]")
        );
    }
    let sources = items.into_iter().map(|item| source(item, &name)).collect::<Result<_, _>>()?;
    Ok(FactSpec::new(name, sources))
}

fn source(item: NodeRef<'_>, fact: &FactName) -> Result<SourceSpec, FieldError> {
    if !item.is_map() {
        return item.word(&[("ip", ())]).map(|()| SourceSpec::Ip).map_err(|_| {
            item.invalid(
                "must be ip, or a map with the field header, as in { header: x-client-id }",
            )
        });
    }
    let fields = item.fields(SOURCE)?;
    let header = fields.required("header")?;
    let name = header_name(header)?;
    let is_digest = fields.optional("digest", NodeRef::boolean)?.unwrap_or(false);
    match (fact.meaning() == Meaning::ApiKey, is_digest) {
        (true, true) => {
            let reason = "remove digest: api_key is always matched and counted by its digest";
            fields.forbid(&["digest"], reason).map(|()| SourceSpec::HeaderDigest(name))
        }
        (false, false) if is_secret_header(&name) => {
            Err(header.invalid(format!("{name} contains a secret; add digest: true")))
        }
        (_, false) => Ok(SourceSpec::Header(name)),
        (_, true) => Ok(SourceSpec::HeaderDigest(name)),
    }
}

/// Returns the name of a header in lower case.
fn header_name(header: NodeRef<'_>) -> Result<Box<str>, FieldError> {
    let name = header.non_empty_text()?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.len() <= MAX_HEADER_NAME && name.bytes().all(is_token) {
        return Ok(name.to_ascii_lowercase().into());
    }
    let reason = format!("{} is not a header name of at most 64 characters", quoted(name));
    Err(header.invalid(reason))
}

/// The maximum length of a header name.
const MAX_HEADER_NAME: usize = 64;
