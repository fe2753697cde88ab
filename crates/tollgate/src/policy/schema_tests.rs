//! The schema takes what the reader takes, and refuses what it refuses, as far as form goes.

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Map, Value as Json};

use super::SCHEMA;
use super::cursor::Cursor;
use super::read::FIELDS;
use super::tree::{Tree, Value};

/// Files that are right in form, and wrong in what they say. (Those that are not even YAML never come
/// to the schema.)
const WRONG_IN_MEANING: &[&str] = &[
    "align-other-unit",
    "burst-of-window",
    "host-port",
    "ip-host-bits",
    "ip-length",
    "key-in-clear-as-fact",
    "limit-name-twice",
    "limit-named-missing",
    "limit-named-next",
    "log-too-long",
    "path-braces",
    "path-stars",
    "rate-beyond-u64",
    "rate-u64",
    "rule-name-twice",
    "tier-key-twice",
    "tier-unknown",
    "tz-unknown",
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

/// A text as an editor sees it; none if it is not YAML or not as we take it.
fn json(text: &str) -> Option<Json> {
    let tree = Tree::parse(text).ok()?;
    Cursor::root(&tree)?;
    Some(node(&tree, 0))
}

fn node(tree: &Tree<'_>, number: usize) -> Json {
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
fn the_schema_has_the_fields_of_the_reader() {
    let schema = schema();
    for (place, fields) in FIELDS {
        let described =
            schema.pointer(&format!("{place}/properties")).unwrap().as_object().unwrap();
        let mut described: Vec<_> = described.keys().map(String::as_str).collect();
        let mut known = fields.to_vec();
        described.sort_unstable();
        known.sort_unstable();
        assert_eq!(described, known, "{place}");
    }
}

#[test]
fn every_field_is_described() {
    let schema = schema();
    for (place, _) in FIELDS {
        let fields = schema.pointer(&format!("{place}/properties")).unwrap().as_object().unwrap();
        for (name, field) in fields {
            let target = field["$ref"].as_str().map(|target| target.trim_start_matches('#'));
            let meant = target.and_then(|target| schema.pointer(target)).unwrap_or(field);
            let is_described = [field, meant].iter().any(|field| field["description"].is_string());
            assert!(is_described || field["const"].is_number(), "{place} {name}");
        }
    }
}

#[test]
fn the_schema_takes_the_examples() {
    let example = fs::read_to_string(root().join("examples/policy.yaml")).unwrap();
    let reference = fs::read_to_string(root().join("docs/POLICY.md")).unwrap();
    let parts = reference.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    for text in parts.chain([example.as_str()]) {
        let example = json(text).unwrap();
        let flaws: Vec<_> =
            validator().iter_errors(&example).map(|flaw| flaw.to_string()).collect();
        assert!(flaws.is_empty(), "{flaws:#?}\n{text}");
    }
}

#[test]
fn the_schema_refuses_what_is_wrong_in_form() {
    let validator = validator();
    let (mut taken, mut refused) = (Vec::new(), 0);
    for entry in fs::read_dir(root().join("crates/tollgate/tests/policy/errors")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().unwrap_or_default() != "yaml" {
            continue;
        }
        let Some(json) = json(&fs::read_to_string(&path).unwrap()) else { continue };
        if validator.is_valid(&json) {
            taken.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        } else {
            refused += 1;
        }
    }
    taken.sort_unstable();
    assert_eq!(taken, WRONG_IN_MEANING);
    assert!(refused >= 25, "{refused}");
}
