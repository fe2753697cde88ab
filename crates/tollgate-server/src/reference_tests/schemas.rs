//! The component schemas of the `OpenAPI` document, collected while operations refer to them.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::ordered_json::ORDER;
use crate::wire::scalar::MAX_INTEGER;

/// Generates schemas of requests and responses. The two differ in which fields are required.
pub(super) struct Schemas {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self {
            requests: settings.clone().for_deserialize().into_generator(),
            responses: settings.for_serialize().into_generator(),
        }
    }

    /// Returns a reference to the schema of a request body.
    pub(super) fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().to_value()
    }

    /// Returns a reference to the schema of a response.
    pub(super) fn response<T: JsonSchema>(&mut self) -> Value {
        self.responses.subschema_for::<T>().to_value()
    }

    /// Returns the schemas of the fields of a type that is read from the query of a URL.
    pub(super) fn parameters<T: JsonSchema>(&mut self) -> Map<String, Value> {
        let mut schema = T::json_schema(&mut self.requests).to_value();
        normalize(&mut schema);
        schema["properties"].as_object().cloned().expect("a struct")
    }

    /// Returns all schemas by name.
    pub(super) fn into_components(mut self) -> Map<String, Value> {
        let mut components = self.requests.take_definitions(true);
        components.values_mut().for_each(normalize);
        for (name, mut schema) in self.responses.take_definitions(true) {
            close_objects(&mut schema);
            normalize(&mut schema);
            let other = components.insert(name.clone(), schema.clone());
            assert!(other.is_none_or(|other| other == schema), "two schemas are named {name}");
        }
        // The generator numbers types of the same name.
        let numbered =
            components.keys().find(|name| name.ends_with(|last: char| last.is_numeric()));
        assert_eq!(numbered, None, "two types have the same name; rename one of them");
        components
    }
}

/// Describes the field `limit` of a counter, where it is the capacity.
pub(crate) fn describe_capacity(schema: &mut Schema) {
    let text = "The burst of a token bucket, else the count. remaining never exceeds it.";
    let limit = schema.pointer_mut("/properties/limit").and_then(Value::as_object_mut);
    limit.expect("a counter has a limit").insert("description".to_owned(), text.into());
}

/// Responses have no other fields, and a field that may be missing is never null.
fn close_objects(schema: &mut Value) {
    for_each_object(schema, &|object| {
        let required = object.get("required").cloned().unwrap_or_default();
        let required = required.as_array().cloned().unwrap_or_default();
        let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) else {
            return;
        };
        for (name, field) in properties.iter_mut() {
            if !required.contains(&json!(name)) {
                remove_null(field);
            }
        }
        object.entry("additionalProperties").or_insert(json!(false));
    });
}

/// Removes null from the values that a schema accepts.
fn remove_null(field: &mut Value) {
    let Some(keywords) = field.as_object_mut() else { return };
    if let Some(values) = keywords.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    if let Some(types) = keywords.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            keywords.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(mut any)) = keywords.remove("anyOf") {
        any.retain(|schema| *schema != json!({ "type": "null" }));
        match &any[..] {
            [only] => keywords.extend(only.as_object().cloned().expect("a schema")),
            _ => drop(keywords.insert("anyOf".to_owned(), any.into())),
        }
    }
}

/// Replaces formats of Rust integers by ranges, joins the lines of descriptions, and records the order of fields.
fn normalize(schema: &mut Value) {
    for_each_object(schema, &|object| {
        let max = match object.get("format").and_then(Value::as_str) {
            Some("uint64" | "uint") => Some(json!(MAX_INTEGER)),
            Some("uint32") => Some(json!(u32::MAX)),
            Some("uint16") => Some(json!(u16::MAX)),
            Some("double") => None,
            _ => {
                describe(object);
                return;
            }
        };
        object.remove("format");
        if let Some(max) = max {
            object.entry("maximum").or_insert(max);
        }
        describe(object);
    });
}

fn describe(object: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace("\n\n", "\u{0}").replace('\n', " ").replace('\u{0}', "\n\n");
    }
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        let others = properties.keys().map(|name| json!(name));
        let others: Vec<Value> = others.filter(|name| !required.contains(name)).collect();
        properties.insert(ORDER.to_owned(), [required, others].concat().into());
    }
}

/// Calls a function for a schema and all schemas in it, outermost first.
fn for_each_object(schema: &mut Value, change: &dyn Fn(&mut Map<String, Value>)) {
    match schema {
        Value::Object(object) => {
            change(object);
            for (keyword, value) in object.iter_mut() {
                match (keyword.as_str(), value) {
                    ("default" | "enum" | "example" | "required" | "dependentRequired", _) => {}
                    ("properties", Value::Object(fields)) => {
                        let fields = fields.iter_mut().filter(|(name, _)| *name != ORDER);
                        fields.for_each(|(_, field)| for_each_object(field, change));
                    }
                    (_, value) => for_each_object(value, change),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_object(item, change)),
        _ => {}
    }
}
