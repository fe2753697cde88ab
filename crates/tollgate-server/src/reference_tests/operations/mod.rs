//! The table of API operations, from which the `OpenAPI` document is generated.

mod admin;
mod decisions;
mod forward_auth;
mod read;
mod service;

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::schemas::Schemas;
use crate::error::{ApiErrorKind, Problem};

/// Returns every operation, in the order of the document.
pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let mut operations = decisions::operations(schemas);
    operations.extend(forward_auth::operations());
    operations.extend(read::operations(schemas));
    operations.extend(admin::operations(schemas));
    operations.extend(service::operations());
    let problem = schemas.response::<Problem>();
    for operation in &mut operations {
        operation.set_problem_schema(&problem);
    }
    operations
}

/// One operation: a method of a path.
pub(super) struct Operation {
    pub(super) path: &'static str,
    pub(super) method: &'static str,
    fields: Map<String, Value>,
}

/// Placeholder for the schema of problems.
const PROBLEM: &str = "problem";

const INVALID_REQUEST: &str = "The request is invalid.";

impl Operation {
    fn new(method: &'static str, path: &'static str, id: &str, tag: &str, summary: &str) -> Self {
        let fields =
            json!({ "operationId": id, "tags": [tag], "summary": summary, "responses": {} });
        let fields = fields.as_object().cloned().unwrap();
        // The limits of the connection apply to every operation.
        let operation = Self { path, method, fields };
        operation.response(
            431,
            json!({ "description": "The request head exceeds 16 KiB or 64 headers (64 KiB or 256 headers from a trusted proxy)." }),
        )
    }

    /// Returns the object of the document.
    pub(super) fn into_value(self) -> Value {
        self.fields.into()
    }

    fn description(self, text: &str) -> Self {
        self.with("description", text.into())
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.fields.insert(field.to_owned(), value);
        self
    }

    /// Sets the alternatives of authentication; an empty name is access without a token. Adds the errors of
    /// authentication.
    fn access(self, schemes: &[&str]) -> Self {
        let scheme = |name: &&str| match *name {
            "" => json!({}),
            name => json!({ name: [] }),
        };
        let security: Vec<Value> = schemes.iter().map(scheme).collect();
        self.with("security", security.into()).authentication_errors()
    }

    fn authentication_errors(self) -> Self {
        self.error(ApiErrorKind::Unauthorized, "The token is missing or invalid.").error(
            ApiErrorKind::TooMany,
            "Too many failed authentication attempts from this address.",
        )
    }

    /// Sets the JSON body, and adds the errors of reading it.
    fn body<T: JsonSchema>(self, schemas: &mut Schemas, example: &Value) -> Self {
        let content = json!({ "schema": schemas.request::<T>(), "example": example });
        let body = json!({ "required": true, "content": { "application/json": content } });
        self.with("requestBody", body)
            .error(ApiErrorKind::Timeout, "The body did not arrive within 30 seconds.")
            .error(ApiErrorKind::TooLarge, "The body is too long.")
            .error(ApiErrorKind::MediaType, "The Content-Type is not application/json.")
    }

    fn parameter(mut self, name: &str, place: &str, mut schema: Value) -> Self {
        let description = schema.as_object_mut().unwrap().remove("description");
        let description = description.expect("a parameter has a description");
        let mut parameter =
            json!({ "name": name, "in": place, "description": description, "schema": schema });
        if place != "query" {
            parameter["required"] = true.into();
        }
        let parameters = self.fields.entry("parameters").or_insert(json!([]));
        parameters.as_array_mut().unwrap().push(parameter);
        self
    }

    /// Adds these fields of a type as parameters of the query.
    fn query<T: JsonSchema>(self, schemas: &mut Schemas, names: &[&str]) -> Self {
        let fields = schemas.parameters::<T>();
        let add = |operation: Self, name: &&str| {
            let field = fields.get(*name).unwrap_or_else(|| panic!("no parameter {name}"));
            operation.parameter(name, "query", field.clone())
        };
        names.iter().fold(self, add)
    }

    /// Replaces the description of a parameter.
    fn describe(mut self, name: &str, text: &str) -> Self {
        let parameters = self.fields.get_mut("parameters").and_then(Value::as_array_mut).unwrap();
        let parameter = parameters.iter_mut().find(|parameter| parameter["name"] == name);
        parameter.expect("a parameter of the operation")["description"] = text.into();
        self
    }

    fn response(mut self, status: u16, response: Value) -> Self {
        self.fields["responses"].as_object_mut().unwrap().insert(status.to_string(), response);
        self
    }

    /// Adds a response with a JSON body.
    fn json<T: JsonSchema>(self, schemas: &mut Schemas, status: u16, description: &str) -> Self {
        let content = json!({ "application/json": { "schema": schemas.response::<T>() } });
        self.response(status, json!({ "description": description, "content": content }))
    }

    /// Adds a response with a text body.
    fn text(self, status: u16, media_type: &str, description: &str) -> Self {
        let content = json!({ media_type: { "schema": { "type": "string" } } });
        self.response(status, json!({ "description": description, "content": content }))
    }

    fn no_content(self, description: &str) -> Self {
        self.response(204, json!({ "description": description }))
    }

    /// Adds an error, with the status and headers of its kind.
    fn error(self, kind: ApiErrorKind, description: &str) -> Self {
        let content = json!({ "application/problem+json": { "schema": PROBLEM } });
        let mut response = json!({ "description": description, "content": content });
        match kind {
            ApiErrorKind::Unauthorized => {
                response["headers"] = header(
                    "WWW-Authenticate",
                    "Bearer authentication.",
                    &json!({ "type": "string" }),
                );
            }
            ApiErrorKind::TooMany | ApiErrorKind::Unavailable | ApiErrorKind::Overloaded => {
                response["headers"] = retry_after();
            }
            _ => {}
        }
        self.response(kind.statuses().http, response)
    }

    fn invalid(self, description: &str) -> Self {
        self.error(ApiErrorKind::Invalid, description)
    }

    fn store_errors(self) -> Self {
        let text = "The store is unavailable, or too many requests wait for it (reason overloaded); retry after \
                    Retry-After. Without that header, the store contains incompatible data under the key and a \
                    retry does not help.";
        self.error(ApiErrorKind::Unavailable, text)
    }

    fn set_problem_schema(&mut self, schema: &Value) {
        for response in self.fields["responses"].as_object_mut().unwrap().values_mut() {
            if let Some(content) = response.pointer_mut("/content/application~1problem+json") {
                content["schema"] = schema.clone();
            }
        }
    }
}

fn header(name: &str, description: &str, schema: &Value) -> Value {
    json!({ name: { "description": description, "schema": schema } })
}

fn retry_after() -> Value {
    let schema = json!({ "type": "integer", "minimum": 1 });
    header("Retry-After", "Time until a retry, in seconds.", &schema)
}
