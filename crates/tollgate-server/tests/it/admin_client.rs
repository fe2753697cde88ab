//! Helpers for tests of the admin API.

use serde_json::{Value, json};

use crate::client::Reply;
use crate::service::Service;

pub(crate) const TOKEN: &str = "a-token-of-tests-0123456789abcdef";

/// Starts `tollgate serve` with an admin token.
pub(crate) fn start_with_admin(args: &[&str]) -> Service {
    Service::start_with(args, &[("TOLLGATE_ADMIN_TOKEN", TOKEN)])
}

/// Sends a request with the admin token.
pub(crate) fn admin(service: &Service, method: &str, path: &str, body: &str) -> Reply {
    let authorization = format!("Bearer {TOKEN}");
    let headers = [("authorization", authorization.as_str())];
    service.client().request(method, path, &headers, body)
}

pub(crate) fn limits_of(client: &str) -> String {
    format!("/admin/external/clients/{client}/limits")
}

/// Returns the body of an override of the default rule with this limit per day.
pub(crate) fn daily_limit(limit: u64) -> String {
    daily_limit_of("default", limit).to_string()
}

/// Returns the body of an override of a rule with this limit per day.
pub(crate) fn daily_limit_of(rule: &str, limit: u64) -> Value {
    let limits = [json!({"limit": limit, "window_ms": 86_400_000})];
    json!({"limits": limits, "rule": rule, "reason": "tests", "author": "kim"})
}

/// Sets the override of a client in the default rule to this limit per day.
pub(crate) fn put(service: &Service, client: &str, limit: u64) -> Value {
    let reply = admin(service, "PUT", &limits_of(client), &daily_limit(limit));
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

/// Returns the audit log, newest entry first.
pub(crate) fn audit(service: &Service) -> Vec<Value> {
    let reply = admin(service, "GET", "/admin/audit", "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()["audit"].as_array().expect("a list").clone()
}
