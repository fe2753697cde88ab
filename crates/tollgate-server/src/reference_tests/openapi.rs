//! `assets/openapi.json`: the table of operations and the schemas of their types.

use serde_json::{Map, Value, json};

use super::operations::operations;
use super::ordered_json::{self, ORDER};
use super::schemas::Schemas;
use super::serde_fields::fields_of;
use super::snapshot::assert_current;
use crate::http::{Batch, HeldBody, Login};
use crate::wire::limit::LimitBody;
use crate::wire::override_body::OverrideBody;
use crate::wire::query::QueryBody;
use crate::wire::reservation::{ReserveBody, SettleBody};

fn tags() -> Value {
    let tag = |name: &str, description: &str| json!({ "name": name, "description": description });
    json!([
        tag("decisions", "Decide whether requests may pass."),
        tag("forward auth", "Decide requests that a proxy describes by headers."),
        tag("operations", "Read limits, counters, blocked keys and status."),
        tag(
            "administration",
            "Change limits at run time. These paths exist only if TOLLGATE_ADMIN_TOKEN is set."
        ),
    ])
}

fn security_schemes() -> Value {
    let token = |text: &str| json!({ "type": "http", "scheme": "bearer", "description": text });
    json!({
        "check": token("TOLLGATE_CHECK_TOKEN, if it is set."),
        "read": token("TOLLGATE_READ_TOKEN, if it is set."),
        "admin": token("TOLLGATE_ADMIN_TOKEN. If it is not set, all admin paths return 404."),
        "forwardAuth": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Tollgate-Token",
            "description": "TOLLGATE_CHECK_TOKEN, if it is set.",
        },
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": "tollgate_session",
            "description": "A session of /api/login in place of the read or admin token. Writes then require Content-Type: \
                            application/json, X-Tollgate-Request and the Origin of this server; otherwise the response is 403.",
        },
    })
}

fn paths(schemas: &mut Schemas) -> Value {
    let mut paths = json!({ ORDER: [] });
    for operation in operations(schemas) {
        let (path, method) = (operation.path, operation.method);
        if paths.get(path).is_none() {
            paths[ORDER].as_array_mut().unwrap().push(path.into());
            paths[path] = json!({ ORDER: [] });
        }
        assert!(paths[path].get(method).is_none(), "{method} {path} is listed twice");
        paths[path][ORDER].as_array_mut().unwrap().push(method.into());
        paths[path][method] = operation.into_value();
    }
    paths
}

/// Gives the fields of request bodies the order of their definition. In responses, required fields have it already.
fn order_requests(components: &mut Map<String, Value>) {
    let bodies = [
        ("Query", fields_of::<QueryBody<'_>>()),
        ("InlineLimit", fields_of::<LimitBody<'_>>()),
        ("OverrideLimit", fields_of::<LimitBody<'_>>()),
        ("OverrideBody", fields_of::<OverrideBody<'_>>()),
        ("Batch", fields_of::<Batch<'_>>()),
        ("ReserveBody", fields_of::<ReserveBody<'_>>()),
        ("SettleBody", fields_of::<SettleBody<'_>>()),
        ("HeldBody", fields_of::<HeldBody<'_>>()),
        ("Login", fields_of::<Login<'_>>()),
    ];
    for (name, fields) in bodies {
        let properties = &mut components[name]["properties"];
        for field in properties.as_object().unwrap().keys().filter(|field| *field != ORDER) {
            assert!(fields.contains(&&**field), "{name} does not read {field}");
        }
        properties[ORDER] = json!(fields);
    }
}

fn document() -> String {
    let mut schemas = Schemas::new();
    let paths = paths(&mut schemas);
    let mut components = schemas.into_components();
    order_requests(&mut components);
    let license = env!("CARGO_PKG_LICENSE");
    ordered_json::text(&json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Distributed rate limiter: may this request pass now, and if not, when?",
            "license": { "name": license, "identifier": license },
        },
        "servers": [{ "url": "/" }],
        "tags": tags(),
        "paths": paths,
        "components": { "schemas": components, "securitySchemes": security_schemes() },
    }))
}

#[test]
fn served_document_is_current() {
    assert_current("crates/tollgate-server/assets/openapi.json", &document());
}
