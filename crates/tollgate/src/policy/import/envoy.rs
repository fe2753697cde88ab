//! Reads a configuration of `envoyproxy/ratelimit`.

use std::collections::HashMap;

use super::Import;
use super::descriptor_tree::{Descriptor, RateLimit, Value};
use super::imported_rule::check_length;
use super::tree_rules;
use crate::algorithm::CalendarUnit;
use crate::naming::is_name;
use crate::policy::error::{FieldError, FieldErrors, PolicyErrorKind};
use crate::policy::node_ref::{Fields, NodeRef, quoted};
use crate::policy::parse::TRIAL_PREFIX;

const ROOT: &[&str] = &["domain", "descriptors"];
const DESCRIPTOR: &[&str] = &[
    "key",
    "value",
    "rate_limit",
    "descriptors",
    "shadow_mode",
    "share_threshold",
    "detailed_metric",
    "value_to_metric",
    "quota_mode",
    "metadata",
];
const RATE_LIMIT: &[&str] = &["unit", "requests_per_unit", "unlimited", "name", "replaces"];

/// Reads one file and adds its rules to the import.
pub(super) fn read(root: NodeRef<'_>, import: &mut Import<'_>, errors: &mut FieldErrors) {
    let result = read_file(root, import, errors);
    errors.record(result);
}

fn read_file(
    root: NodeRef<'_>,
    import: &mut Import<'_>,
    errors: &mut FieldErrors,
) -> Result<(), FieldError> {
    let fields = root.fields(ROOT)?;
    let node = fields.required("domain")?;
    let domain = node.non_empty_text()?;
    check_length(node, domain)?;
    import.add_domain(domain, node)?;
    let descriptors = read_level(&fields, import, errors)?;
    for rule in tree_rules::rules(domain, &descriptors, import) {
        import.rules.extend(errors.record(rule));
    }
    Ok(())
}

/// Reads the field `descriptors`. Invalid descriptors are recorded in `errors` and left out.
fn read_level<'t>(
    fields: &Fields<'t>,
    import: &mut Import<'_>,
    errors: &mut FieldErrors,
) -> Result<Vec<Descriptor<'t>>, FieldError> {
    let mut level = Vec::new();
    let mut seen = HashMap::new();
    let nodes = fields.non_null("descriptors").map(NodeRef::list).transpose()?;
    for node in nodes.unwrap_or_default() {
        let descriptor = read_descriptor(node, import, errors);
        let Some(descriptor) = errors.record(descriptor) else { continue };
        let result = check_unique(&descriptor, &mut seen);
        errors.record(result);
        level.push(descriptor);
    }
    Ok(level)
}

fn read_descriptor<'t>(
    node: NodeRef<'t>,
    import: &mut Import<'_>,
    errors: &mut FieldErrors,
) -> Result<Descriptor<'t>, FieldError> {
    let fields = node.fields(DESCRIPTOR)?;
    let key_node = fields.required("key")?;
    let key = key_node.non_empty_text()?;
    if key.contains('*') {
        let reason = "a wildcard in a key cannot be imported; only values can contain *";
        return Err(key_node.invalid(reason));
    }
    let value = fields.non_null("value").map(NodeRef::text).transpose()?.unwrap_or_default();
    let value = Value::parse(value);
    let is_set = |name| fields.non_null(name).map_or(Ok(false), NodeRef::boolean);
    let is_shared = is_set("share_threshold")?;
    if is_shared && !matches!(value, Value::Wildcard(_)) {
        let node = fields.get("share_threshold").unwrap_or(node);
        return Err(node.invalid("is only valid with a value that contains *"));
    }
    check_response_fields(&fields, import)?;
    Ok(Descriptor {
        node,
        key,
        value,
        limit: fields.non_null("rate_limit").map(|node| read_limit(node, import)).transpose()?,
        is_shadow: is_set("shadow_mode")?,
        is_shared,
        descriptors: read_level(&fields, import, errors)?,
    })
}

/// Warns about fields that change only metrics. Fields that change responses are errors.
fn check_response_fields(fields: &Fields<'_>, import: &mut Import<'_>) -> Result<(), FieldError> {
    for name in ["detailed_metric", "value_to_metric"] {
        if let Some(node) = fields.non_null(name)
            && node.boolean()?
        {
            import.warn(node, "ignored; it changes only metrics");
        }
    }
    if let Some(node) = fields.non_null("quota_mode")
        && node.boolean()?
    {
        return Err(node.invalid("cannot be expressed in a policy; remove it"));
    }
    let reason = "cannot be expressed in a policy; remove it";
    match fields.non_null("metadata") {
        Some(node) => Err(node.name_error(PolicyErrorKind::Value, reason)),
        None => Ok(()),
    }
}

fn read_limit<'t>(node: NodeRef<'t>, import: &mut Import<'_>) -> Result<RateLimit<'t>, FieldError> {
    let fields = node.fields(RATE_LIMIT)?;
    if let Some(replaces) = fields.non_null("replaces")
        && !replaces.list()?.is_empty()
    {
        let reason = "cannot be expressed in a policy: a rule cannot cancel the limit of another \
                      descriptor";
        return Err(replaces.name_error(PolicyErrorKind::Value, reason));
    }
    if fields.non_null("unlimited").map_or(Ok(false), NodeRef::boolean)? {
        fields.forbid(&["unit"], "is not valid with unlimited: true")?;
        return Ok(RateLimit::Unlimited);
    }
    let requests = fields.required("requests_per_unit")?;
    let unit = read_unit(fields.required("unit")?)?;
    let name = fields.non_null("name").map(|node| read_name(node, import)).transpose()?.flatten();
    match requests.number(0)? {
        requests if requests <= u64::from(u32::MAX) => {
            Ok(RateLimit::PerUnit { requests, unit, name })
        }
        _ => Err(requests.invalid("must be at most 4294967295")),
    }
}

fn read_unit(node: NodeRef<'_>) -> Result<CalendarUnit, FieldError> {
    let text = node.text()?;
    let units = CalendarUnit::ALL.iter();
    let unit = units.copied().find(|unit| unit.as_str().eq_ignore_ascii_case(text));
    unit.ok_or_else(|| {
        let known = CalendarUnit::ALL.map(CalendarUnit::as_str).join(", ");
        node.invalid(format!("unknown unit {} (valid: {known})", quoted(text)))
    })
}

/// Returns the name of a limit, or `None` with a warning if a policy cannot have it.
fn read_name<'t>(
    node: NodeRef<'t>,
    import: &mut Import<'_>,
) -> Result<Option<&'t str>, FieldError> {
    let name = node.text()?;
    if name.is_empty() {
        return Ok(None);
    }
    if is_name(name) && !name.starts_with(TRIAL_PREFIX) {
        return Ok(Some(name));
    }
    import.warn(node, "ignored; it is not a valid name of a limit");
    Ok(None)
}

/// Returns an error if the level already has a descriptor with this key and value. `envoyproxy/ratelimit` compares
/// `key_value`.
fn check_unique<'t>(
    descriptor: &Descriptor<'t>,
    seen: &mut HashMap<String, (NodeRef<'t>, &'t str)>,
) -> Result<(), FieldError> {
    let (node, key) = (descriptor.node, descriptor.key);
    let composite = match descriptor.value {
        Value::Exact(value) | Value::Wildcard(value) => format!("{key}_{value}"),
        Value::Any => key.to_owned(),
    };
    let Some((first, first_key)) = seen.insert(composite, (node, key)) else { return Ok(()) };
    let line = first.position().line();
    let reason = if first_key == key {
        format!("duplicate key and value; line {line} has the same")
    } else {
        format!(
            "envoyproxy/ratelimit cannot distinguish this key and value from those on line {line}"
        )
    };
    Err(node.error(PolicyErrorKind::Duplicate, reason))
}
