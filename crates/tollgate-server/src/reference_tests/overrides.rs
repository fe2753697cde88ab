//! Schemas of overrides that differ from one type by a few fields.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::wire::limit::LimitBody;
use crate::wire::override_view::{OverrideResponse, OverrideView};

/// The fields of an override that only admins can read.
const ADMIN_ONLY: [&str; 2] = ["reason", "author"];

/// Defines a type whose schema is derived from that of another type.
macro_rules! variant {
    ($(#[$doc:meta])* $name:ident, $schema_name:literal, $of:ty, $change:expr) => {
        $(#[$doc])*
        pub(crate) enum $name {}

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $schema_name.into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let mut schema = <$of>::json_schema(generator);
                $change(&mut schema);
                schema
            }
        }
    };
}

variant! {
    /// An override as admins see it.
    AdminOverride, "Override", OverrideResponse<'static>, require_admin_fields
}
variant! {
    /// An override as everyone with a read token sees it.
    PublicOverride, "PublicOverride", OverrideResponse<'static>, remove_admin_fields
}
variant! {
    /// An override in the audit log.
    OverrideRecord, "OverrideRecord", OverrideView<'static>, require_admin_fields
}
variant! {
    /// A limit of an override in a request.
    OverrideLimit, "OverrideLimit", LimitBody<'static>, restrict_limit
}

fn require_admin_fields(schema: &mut Schema) {
    let required = schema.get_mut("required").and_then(Value::as_array_mut).unwrap();
    required.extend(ADMIN_ONLY.map(Value::from));
}

fn remove_admin_fields(schema: &mut Schema) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut).unwrap();
    properties.retain(|name, _| !ADMIN_ONLY.contains(&&**name));
}

/// Removes the fields that `LimitBody::to_override` rejects, and describes the others.
fn restrict_limit(schema: &mut Schema) {
    let text = "A limit of an override. Fields that it omits come from the limit of the rule.";
    schema.insert("description".to_owned(), text.into());
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut).unwrap();
    properties.retain(|name, _| !["align", "tz", "ttl_ms"].contains(&&**name));
    let mut set = |field: &str, keyword: &str, value: Value| {
        properties[field].as_object_mut().unwrap().insert(keyword.to_owned(), value);
    };
    set("window_ms", "minimum", json!(1));
    set(
        "window_ms",
        "description",
        "The window in milliseconds; required except for concurrency.".into(),
    );
    let algorithm =
        "Default: the algorithm of the rule's limit with the same window, else token_bucket.";
    set("algorithm", "description", algorithm.into());
    let name = "The name of the rule's limit to replace. Default: the limit with the same window.";
    set("name", "description", name.into());
    let unit = "Default: the unit of the rule's limit that the entry replaces, else requests.";
    set("unit", "description", unit.into());
    properties["unit"].as_object_mut().unwrap().remove("default");
    properties["algorithm"].as_object_mut().unwrap().remove("default");
}

/// The limits of an override in a request.
pub(crate) enum OverrideLimits {}

impl JsonSchema for OverrideLimits {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OverrideLimits".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<OverrideLimit>();
        json_schema!({ "type": "array", "minItems": 1, "maxItems": 8, "items": items })
    }
}

/// A value in the audit log: an override, a text such as a policy version, or null.
pub(crate) enum AuditedValue {}

impl JsonSchema for AuditedValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AuditedValue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let record = generator.subschema_for::<OverrideRecord>();
        json_schema!({ "oneOf": [record, { "type": "string" }, { "type": "null" }] })
    }
}
