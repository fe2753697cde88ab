//! Writes JSON with the fields of objects in an order for readers.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

/// A key that lists the order of the other keys of its object. It is not written.
pub(super) const ORDER: &str = "x-order";

/// Keywords that come first, in this order.
const FIRST: [&str; 22] = [
    "openapi",
    "info",
    "title",
    "version",
    "servers",
    "tags",
    "paths",
    "components",
    "schemas",
    "securitySchemes",
    "operationId",
    "name",
    "in",
    "url",
    "$ref",
    "type",
    "format",
    "enum",
    "pattern",
    "summary",
    "description",
    "default",
];

/// Keywords that come last, in this order.
const LAST: [&str; 12] = [
    "security",
    "parameters",
    "requestBody",
    "responses",
    "headers",
    "content",
    "schema",
    "example",
    "items",
    "properties",
    "required",
    "additionalProperties",
];

/// Returns the text of a document, indented by one space.
pub(super) fn text(document: &Value) -> String {
    let mut text = Vec::new();
    let formatter = PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
    Ordered(document).serialize(&mut serializer).unwrap();
    text.push(b'\n');
    String::from_utf8(text).unwrap()
}

struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(object) => {
                let order = object.get(ORDER).and_then(Value::as_array);
                let mut entries: Vec<_> = object.iter().filter(|(key, _)| *key != ORDER).collect();
                entries.sort_by_key(|(key, _)| match order {
                    Some(order) => order.iter().position(|name| name == *key),
                    None => Some(rank(key)),
                });
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, &Ordered(value))?;
                }
                map.end()
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Ordered)),
            other => other.serialize(serializer),
        }
    }
}

fn rank(key: &str) -> usize {
    let first = FIRST.iter().position(|keyword| *keyword == key);
    let last = LAST.iter().position(|keyword| *keyword == key);
    first.or(last.map(|position| FIRST.len() + 1 + position)).unwrap_or(FIRST.len())
}

#[test]
fn fields_have_the_listed_order() {
    let document = serde_json::json!({
        "required": [], "type": "object", "properties": { "b": 1, "a": 2, "x-order": ["b", "a"] },
    });
    let compact: String = text(&document).split_whitespace().collect();
    assert_eq!(compact, r#"{"type":"object","properties":{"b":1,"a":2},"required":[]}"#);
}
