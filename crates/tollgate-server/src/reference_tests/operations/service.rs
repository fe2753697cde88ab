//! Health, metrics and the document itself.

use serde_json::json;

use super::Operation;

const TAG: &str = "operations";

pub(super) fn operations() -> Vec<Operation> {
    let document = json!({ "application/json": { "schema": { "type": "object" } } });
    let document = json!({ "description": "This document.", "content": document });
    let text = "text/plain";
    vec![
        get("/metrics", "metrics", "Metrics for Prometheus").text(
            200,
            text,
            "Metrics in the Prometheus text format.",
        ),
        get("/healthz", "healthz", "Liveness").text(200, text, "The process is alive."),
        get("/readyz", "readyz", "Readiness").text(200, text, "The node accepts requests.").text(
            503,
            text,
            "The node is draining; send requests to another node.",
        ),
        get("/openapi.json", "openapi", "The OpenAPI document").response(200, document),
    ]
}

fn get(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new("get", path, id, TAG, summary)
}
