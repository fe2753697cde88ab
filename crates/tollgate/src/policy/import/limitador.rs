//! Reads the limits of Limitador.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Import;
use super::comparison::{Comparison, variable};
use super::imported_rule::{ImportedLimit, ImportedMode, ImportedRule, check_length, literal};
use crate::policy::error::{FieldError, FieldErrors, PolicyErrorKind};
use crate::policy::node_ref::{Fields, NodeRef, quoted};
use crate::request::{MAX_FACTS, entry_fact};

const LIMIT: &[&str] =
    &["namespace", "max_value", "seconds", "conditions", "variables", "name", "id"];

/// The maximum window: 100 years.
const MAX_SECONDS: u64 = 36_525 * 86_400;

/// What distinguishes a limit from the others. Limitador compares neither names nor maximum values.
type Identity<'t> = (&'t str, u64, BTreeSet<Comparison<'t>>, BTreeSet<&'t str>);

/// Reads one file and adds its rules to the import.
pub(super) fn read(root: NodeRef<'_>, import: &mut Import<'_>, errors: &mut FieldErrors) {
    let Some(limits) = errors.record(root.list()) else { return };
    let mut seen = HashMap::new();
    for node in limits {
        let rule = read_limit(node, import, &mut seen);
        import.rules.extend(errors.record(rule).flatten());
    }
}

/// Reads a limit. Returns `None` with a warning if it can never apply.
fn read_limit<'t>(
    node: NodeRef<'t>,
    import: &mut Import<'_>,
    seen: &mut HashMap<Identity<'t>, usize>,
) -> Result<Option<ImportedRule>, FieldError> {
    let fields = node.fields(LIMIT)?;
    let namespace_node = fields.required("namespace")?;
    let namespace = namespace_node.non_empty_text()?;
    check_length(namespace_node, namespace)?;
    import.add_domain(namespace, namespace_node)?;
    let count = fields.required("max_value")?.number(0)?;
    let seconds = read_seconds(fields.required("seconds")?)?;
    let conditions = read_list(&fields, "conditions", |node| {
        let comparison = Comparison::parse(node.text()?).map_err(|reason| node.invalid(reason))?;
        check_length(node, comparison.value)?;
        fact(node, comparison.key)?;
        Ok(comparison)
    })?;
    let variables = read_list(&fields, "variables", |node| {
        let key = variable(node.text()?).map_err(|reason| node.invalid(reason))?;
        fact(node, key)?;
        Ok(key)
    })?;
    if variables.len() > MAX_FACTS {
        return Err(node.invalid(format!("must have at most {MAX_FACTS} variables")));
    }
    let name = fields.non_null("name").or_else(|| fields.non_null("id"));
    let name = name.map_or(Ok("limit"), NodeRef::text)?;
    let identity = (
        namespace,
        seconds,
        conditions.iter().cloned().collect(),
        variables.iter().copied().collect(),
    );
    check_unique(node, identity, seen)?;
    let Some(Conditions { facts, unless }) = Conditions::of(&conditions) else {
        import.warn(namespace_node, "this limit is left out; its conditions exclude each other");
        return Ok(None);
    };
    Ok(Some(ImportedRule {
        location: import.location(namespace_node),
        name: format!("{namespace}.{name}"),
        domain: namespace.to_owned(),
        facts,
        unless,
        per: variables.iter().filter_map(|key| entry_fact(key)).collect(),
        limit: ImportedLimit::Rolling { count, seconds },
        mode: ImportedMode::Together,
    }))
}

fn read_seconds(node: NodeRef<'_>) -> Result<u64, FieldError> {
    match node.number(1)? {
        seconds if seconds <= MAX_SECONDS => Ok(seconds),
        _ => Err(node.invalid("must be at most 100 years (3155760000 seconds)")),
    }
}

/// Reads a list whose order has no meaning, each item once.
fn read_list<'t, T: PartialEq>(
    fields: &Fields<'t>,
    name: &str,
    read: impl Fn(NodeRef<'t>) -> Result<T, FieldError>,
) -> Result<Vec<T>, FieldError> {
    let mut items = Vec::new();
    for node in fields.non_null(name).map(NodeRef::list).transpose()?.unwrap_or_default() {
        let item = read(node)?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

/// Returns the fact that holds the entry with this key.
fn fact(node: NodeRef<'_>, key: &str) -> Result<String, FieldError> {
    entry_fact(key).ok_or_else(|| {
        node.invalid(format!("the key {} is too long; at most 58 bytes are supported", quoted(key)))
    })
}

fn check_unique<'t>(
    node: NodeRef<'t>,
    identity: Identity<'t>,
    seen: &mut HashMap<Identity<'t>, usize>,
) -> Result<(), FieldError> {
    match seen.insert(identity, node.position().line()) {
        None => Ok(()),
        Some(line) => {
            let reason = format!(
                "duplicate limit; that on line {line} has the same namespace, seconds, conditions \
                 and variables"
            );
            Err(node.error(PolicyErrorKind::Duplicate, reason))
        }
    }
}

/// The conditions of a limit as those of a rule.
struct Conditions {
    facts: Vec<(String, String)>,
    unless: Vec<(String, Vec<String>)>,
}

impl Conditions {
    /// Returns `None` if no request can meet all conditions. Without the entry, neither `==` nor `!=` holds.
    fn of(comparisons: &[Comparison<'_>]) -> Option<Self> {
        let mut by_key: BTreeMap<&str, (Option<&str>, Vec<&str>)> = BTreeMap::new();
        for Comparison { key, is_equal, value } in comparisons {
            let (equal, unequal) = by_key.entry(*key).or_default();
            match is_equal {
                true if equal.is_some() => return None,
                true => *equal = Some(*value),
                false => unequal.push(*value),
            }
        }
        let mut facts = vec![("descriptor_index".to_owned(), "0".to_owned())];
        let mut unless = Vec::new();
        for (key, (equal, unequal)) in by_key {
            if equal.is_some_and(|equal| unequal.contains(&equal)) {
                return None;
            }
            let fact = entry_fact(key)?;
            facts.push((fact.clone(), equal.map_or_else(|| "*".to_owned(), literal)));
            if equal.is_none() {
                unless.push((fact, unequal.into_iter().map(literal).collect()));
            }
        }
        Some(Self { facts, unless })
    }
}
