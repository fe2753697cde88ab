//! The JSON schema of policies and docs/POLICY.md describe the same fields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::snapshot::read;

/// Collects the names of all fields that objects of a schema define.
fn fields(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(keywords) => {
            if let Some(properties) = keywords.get("properties").and_then(Value::as_object) {
                names.extend(properties.keys().cloned());
            }
            keywords.values().for_each(|value| fields(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, names)),
        _ => {}
    }
}

#[test]
fn printed_schema_is_the_committed_file() {
    assert_eq!(tollgate::policy::SCHEMA, read("crates/tollgate/policy.schema.json"));
}

#[test]
fn policy_page_documents_every_field_of_the_schema() {
    let (page, mut names) = (read("docs/POLICY.md"), BTreeSet::new());
    fields(&serde_json::from_str(tollgate::policy::SCHEMA).unwrap(), &mut names);
    assert!(names.len() > 30, "{names:?}");
    let missing: Vec<_> =
        names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/POLICY.md does not describe {missing:?}");
}
