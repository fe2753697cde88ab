//! Reading for operators: listings, status, the live view and sessions.

use serde_json::json;

use super::super::schemas::Schemas;
use super::decisions::query_example;
use super::{INVALID_REQUEST, Operation, header};
use crate::api::read::{
    BlocksPage, ClientView, CountersPage, EventsPage, History, Limits, Nodes, Status,
};
use crate::error::ApiErrorKind;
use crate::http::{ClientQuery, HistoryQuery, ListQuery, Login, SessionResponse};
use crate::wire::explanation::ExplainResponse;
use crate::wire::query::QueryBody;

const TAG: &str = "operations";
const ACCESS: [&str; 4] = ["", "read", "admin", "session"];
const PAGE: [&str; 4] = ["limit", "cursor", "prefix", "tenant"];
const NOT_DASHBOARD: &str =
    "The request has a session cookie but does not come from the dashboard.";

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![
        get("/api/nodes", "nodes", "List the nodes that share the store")
            .query::<ListQuery>(schemas, &PAGE[..3])
            .describe("limit", "Maximum number of nodes on a page.")
            .describe("prefix", "Only nodes whose id starts with this text.")
            .json::<Nodes>(schemas, 200, "The nodes.")
            .invalid(INVALID_REQUEST)
            .store_errors(),
        get("/api/counters", "counters", "List counters")
            .query::<ListQuery>(schemas, &PAGE)
            .json::<CountersPage>(schemas, 200, "The counters.")
            .invalid(INVALID_REQUEST)
            .store_errors(),
        get("/api/limits", "limits", "List the configured limits")
            .query::<ListQuery>(schemas, &PAGE)
            .describe("tenant", "The tenant of the clients. Default: the tenant of the policy.")
            .json::<Limits<'_>>(schemas, 200, "The configured limits.")
            .invalid(INVALID_REQUEST),
        get("/api/blocks", "blocks", "List the keys that are refused now")
            .query::<ListQuery>(schemas, &PAGE)
            .json::<BlocksPage>(schemas, 200, "The blocked keys.")
            .invalid(INVALID_REQUEST)
            .store_errors(),
        client(schemas),
        get("/api/events", "events", "List the events of the last day")
            .description(
                "At most 10 000 events are kept. While Redis is lost, the response contains the events of this node \
                 only.",
            )
            .query::<ListQuery>(schemas, &PAGE[..2])
            .describe("limit", "Maximum number of events on a page.")
            .json::<EventsPage>(schemas, 200, "The events, newest first.")
            .invalid(INVALID_REQUEST),
        get("/api/history", "history", "Read the counts of a time range")
            .description(
                "The counts of all nodes per interval. While Redis is lost, the response contains those of this node \
                 only.",
            )
            .query::<HistoryQuery>(schemas, &["range"])
            .json::<History>(schemas, 200, "The counts.")
            .invalid(INVALID_REQUEST),
        get("/api/status", "status", "Status of this node: store, breaker and policy")
            .json::<Status<'_>>(schemas, 200, "The status."),
        explain(schemas),
        live(),
        Operation::new("get", "/api/session", "session", TAG, "Permissions of the current session")
            .json::<SessionResponse>(schemas, 200, "The permissions."),
        login(schemas),
        from_browser(Operation::new("post", "/api/logout", "logout", TAG, "Log out"))
            .no_content("The cookie is deleted."),
    ]
}

fn get(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new("get", path, id, TAG, summary).access(&ACCESS)
}

fn client(schemas: &mut Schemas) -> Operation {
    let id = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": tollgate::MAX_FACT_LENGTH,
        "description": "The value of the fact `client`, or of another fact that rules count by, such as `ip`.",
    });
    get("/api/clients/{id}", "client", "Recent refusals, counters and overrides of a client")
        .description(
            "Everything about one client in every rule, for the question why it is refused. The dashboard uses it. \
             While the store is unavailable, it returns what this node knows.",
        )
        .parameter("id", "path", id)
        .query::<ClientQuery>(schemas, &["tenant"])
        .json::<ClientView<'_>>(schemas, 200, "The client.")
        .invalid(INVALID_REQUEST)
}

fn explain(schemas: &mut Schemas) -> Operation {
    Operation::new(
        "post",
        "/api/explain",
        "explainForOperators",
        TAG,
        "Explain a decision (read token)",
    )
    .description("The same as /explain, but with the read token. The dashboard uses it.")
    .access(&ACCESS)
    .body::<QueryBody<'_>>(schemas, &query_example())
    .json::<ExplainResponse<'_, '_>>(schemas, 200, "The explanation.")
    .invalid(INVALID_REQUEST)
    .error(ApiErrorKind::Forbidden, NOT_DASHBOARD)
}

fn live() -> Operation {
    get("/api/live", "live", "Stream live figures")
        .description(
            "Server-sent events, each with one line of JSON: `policy` at the start and after a change, `history` (the \
             last 15 minutes) at the start, then one `frame` per second. The figures cover all nodes. The stream ends \
             after ten minutes or when the node stops; reconnect then. docs/OPERATING.md describes the events.",
        )
        .text(200, "text/event-stream", "Server-sent events.")
        .error(ApiErrorKind::Unavailable, "Too many live streams are open on this node.")
}

fn login(schemas: &mut Schemas) -> Operation {
    let content =
        json!({ "application/json": { "schema": schemas.response::<SessionResponse>() } });
    let reply = json!({
        "description": "The permissions of the new session.",
        "content": content,
        "headers": header("Set-Cookie", "The session cookie.", &json!({ "type": "string" })),
    });
    from_browser(Operation::new("post", "/api/login", "login", TAG, "Log in from a browser"))
        .description(
            "Starts a session of eight hours with the read or the admin token. The cookie is HttpOnly, SameSite=Strict \
             and Secure, so it works over https and on loopback. Programs send the token itself instead.",
        )
        .body::<Login<'_>>(schemas, &json!({ "token": "0123456789abcdef0123456789abcdef" }))
        .response(200, reply)
        .invalid("The body is invalid.")
        .authentication_errors()
        .error(ApiErrorKind::NotFound, "Login is disabled: no read or admin token is configured.")
}

/// Adds the headers that only pages of this server can send.
fn from_browser(operation: Operation) -> Operation {
    let origin = "The origin of this server, as sent by browsers.";
    let request = "Any value. Pages of other sites cannot send this header.";
    operation
        .parameter("Origin", "header", json!({ "type": "string", "description": origin }))
        .parameter(
            "X-Tollgate-Request",
            "header",
            json!({ "type": "string", "description": request, "examples": ["dashboard"] }),
        )
        .error(ApiErrorKind::Forbidden, NOT_DASHBOARD)
}
