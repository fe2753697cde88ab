//! Forward auth.

use serde_json::{Value, json};

use super::{Operation, PROBLEM, retry_after};

const TAG: &str = "forward auth";

pub(super) fn operations() -> Vec<Operation> {
    let forwarded = "Decides the request that X-Forwarded-Method, -Uri, -Host and -For describe, if the peer is in \
                     --trusted-proxies. Accepts any method and ignores the query.";
    let nginx = "Decides the request that X-Original-URI, X-Original-Method, Host and X-Forwarded-For describe, if the \
                 peer is in --trusted-proxies. Accepts any method and ignores the query. The header X-Tollgate-Status \
                 of a refusal is the status for the client.";
    let allowed = "The request is allowed. The response has rate limit headers and no body.";
    let get = |path, id, summary| {
        Operation::new("get", path, id, TAG, summary)
            .with("security", json!([{}, { "forwardAuth": [] }]))
            .response(200, json!({ "description": allowed }))
    };
    vec![
        get("/auth", "auth", "Forward auth for Traefik, Caddy and HAProxy")
            .description(forwarded)
            .response(400, refusal("The path is invalid, or a forwarding header occurs twice."))
            .response(401, refusal("The token is missing or invalid."))
            .response(414, refusal("The path is longer than 1024 bytes."))
            .response(429, waiting("A limit is exceeded."))
            .response(503, waiting("The store is unavailable, or too many requests wait for it.")),
        get("/auth/nginx", "authNginx", "Forward auth for nginx")
            .description(nginx)
            .response(403, waiting("The request is refused.")),
    ]
}

/// A refusal in the style of `--auth-body`, or a problem.
fn refusal(description: &str) -> Value {
    let fields = json!({
        "error": { "type": "string" },
        "message": { "type": "string" },
        "retry_after": { "type": ["integer", "null"], "minimum": 1 },
    });
    let simple = json!({ "type": "object", "required": ["error", "message", "retry_after"], "properties": fields });
    let content = json!({
        "application/json": { "schema": simple },
        "application/problem+json": { "schema": PROBLEM },
    });
    json!({ "description": description, "content": content })
}

fn waiting(description: &str) -> Value {
    let mut response = refusal(description);
    response["headers"] = retry_after();
    response
}
