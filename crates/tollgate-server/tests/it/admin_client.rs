//! A service with an administrator, and what that one asks.

use serde_json::{Value, json};

use crate::client::Reply;
use crate::service::Service;

pub(crate) const TOKEN: &str = "a-token-of-tests-0123456789abcdef";

/// `tollgate serve` with a token for administrators.
pub(crate) fn administered(args: &[&str]) -> Service {
    Service::start_with(args, &[("TOLLGATE_ADMIN_TOKEN", TOKEN)])
}

/// One request of an administrator.
pub(crate) fn admin(service: &Service, method: &str, path: &str, body: &str) -> Reply {
    let authorization = format!("Bearer {TOKEN}");
    let headers = [("authorization", authorization.as_str())];
    service.client().request(method, path, &headers, body)
}

pub(crate) fn limits_of(client: &str) -> String {
    format!("/admin/external/clients/{client}/limits")
}

/// So many in a day, as a body.
pub(crate) fn a_day(limit: u64) -> String {
    json!({"limits": [{"limit": limit, "window_ms": 86_400_000}], "reason": "tests", "author": "kim"})
        .to_string()
}

/// Sets a client's own limit.
pub(crate) fn put(service: &Service, client: &str, limit: u64) -> Value {
    let reply = admin(service, "PUT", &limits_of(client), &a_day(limit));
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

/// The audit, newest first.
pub(crate) fn audit(service: &Service) -> Vec<Value> {
    let reply = admin(service, "GET", "/admin/audit", "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()["audit"].as_array().expect("a list").clone()
}
