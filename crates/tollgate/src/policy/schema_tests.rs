//! The JSON schema accepts and rejects the same files as the parser, as far as a schema can.

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Map, Value as Json};

use super::SCHEMA;
use super::node_ref::NodeRef;
use super::parse::FIELDS;
use super::yaml_tree::{POLICY, Value, YamlTree};

/// Invalid policies that the schema accepts, because only the parser can detect the error. (Files that are not
/// valid YAML are never validated against the schema.)
const ACCEPTED_BY_SCHEMA: &[&str] = &[
    "align-other-unit",
    "burst-without-bucket",
    "duplicate-limit-name",
    "duplicate-rule-name",
    "duplicate-tier-key",
    "host-port",
    "ip-host-bits",
    "ip-length",
    "limit-named-missing",
    "limit-named-next",
    "match-secret-header",
    "path-braces",
    "path-stars",
    "plaintext-key-as-fact",
    "rate-beyond-u64",
    "rate-u64",
    "sliding-window-too-large",
    "tier-unknown",
    "tz-unknown",
    "unit-limiter",
    "window-beyond-u64",
    "window-too-long",
    "window-zero",
];

fn schema() -> Json {
    serde_json::from_str(SCHEMA).unwrap()
}

fn validator() -> Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

/// Parses a policy to JSON, as an editor sees it; `None` if it is not YAML that policies support.
fn json(text: &str) -> Option<Json> {
    let tree = YamlTree::parse(text, POLICY).ok()?;
    NodeRef::root(&tree)?;
    Some(node(&tree, 0))
}

fn node(tree: &YamlTree<'_>, number: usize) -> Json {
    match &tree.node(number).unwrap().value {
        Value::List(items) => items.iter().map(|item| node(tree, *item)).collect(),
        Value::Map(fields) => {
            let name = |field: usize| tree.field(field).rsplit('.').next().unwrap().to_owned();
            fields
                .iter()
                .map(|field| (name(*field), node(tree, *field)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Scalar { text, is_plain: false } => Json::from(&**text),
        Value::Scalar { text, is_plain: true } => match &**text {
            "" | "~" | "null" => Json::Null,
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            text => serde_json::from_str::<serde_json::Number>(text)
                .map_or_else(|_| Json::from(text), Json::Number),
        },
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn schema_and_parser_know_the_same_fields() {
    let schema = schema();
    for (pointer, fields) in FIELDS {
        let described =
            schema.pointer(&format!("{pointer}/properties")).unwrap().as_object().unwrap();
        let mut described: Vec<_> = described.keys().map(String::as_str).collect();
        let mut known = fields.to_vec();
        described.sort_unstable();
        known.sort_unstable();
        assert_eq!(described, known, "{pointer}");
    }
}

#[test]
fn every_field_has_a_description() {
    let schema = schema();
    for (pointer, _) in FIELDS {
        let fields = schema.pointer(&format!("{pointer}/properties")).unwrap().as_object().unwrap();
        for (name, field) in fields {
            let target = field["$ref"].as_str().map(|target| target.trim_start_matches('#'));
            let target = target.and_then(|target| schema.pointer(target)).unwrap_or(field);
            let is_described = [field, target].iter().any(|field| field["description"].is_string());
            assert!(is_described || field["const"].is_number(), "{pointer} {name}");
        }
    }
}

#[test]
fn schema_accepts_the_examples() {
    let example = fs::read_to_string(root().join("examples/policy.yaml")).unwrap();
    let reference = fs::read_to_string(root().join("docs/POLICY.md")).unwrap();
    let blocks = reference.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    for text in blocks.chain([example.as_str()]) {
        let example = json(text).unwrap();
        let errors: Vec<_> =
            validator().iter_errors(&example).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}\n{text}");
    }
}

#[test]
fn schema_rejects_most_invalid_policies() {
    let validator = validator();
    let (mut accepted, mut rejected) = (Vec::new(), 0);
    for entry in fs::read_dir(root().join("crates/tollgate/tests/policy/errors")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().unwrap_or_default() != "yaml" {
            continue;
        }
        let Some(json) = json(&fs::read_to_string(&path).unwrap()) else { continue };
        if validator.is_valid(&json) {
            accepted.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        } else {
            rejected += 1;
        }
    }
    accepted.sort_unstable();
    assert_eq!(accepted, ACCEPTED_BY_SCHEMA);
    assert!(rejected >= 25, "{rejected}");
}
