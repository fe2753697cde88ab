//! Administration: overrides, stats and reset of clients, the audit log, policy reload.

use serde_json::json;

use super::super::schemas::Schemas;
use super::Operation;
use crate::api::admin::{AuditPage, OverrideList, ReloadReply, Stats};
use crate::error::ApiErrorKind;
use crate::http::{ChangeQuery, ListQuery};
use crate::wire::override_body::OverrideBody;
use crate::wire::override_effect_view::SetOverrideResponse;
use crate::wire::override_view::ClientOverridesResponse;

const CLIENT_LIMITS: &str = "/admin/external/clients/{id}/limits";
const CHANGE: [&str; 3] = ["tenant", "author", "reason"];
const NO_OVERRIDE: &str = "The client has no override.";
const TENANT: &str = "Only overrides of this tenant.";

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![
        put_limits(schemas),
        of_client("get", CLIENT_LIMITS, "getLimits", "Get the overrides of a client")
            .query::<ChangeQuery>(schemas, &CHANGE[..1])
            .json::<ClientOverridesResponse<'_>>(
                schemas,
                200,
                "The newest override, and all overrides of the client.",
            )
            .error(ApiErrorKind::NotFound, NO_OVERRIDE),
        of_client("delete", CLIENT_LIMITS, "deleteLimits", "Remove the overrides of a client")
            .query::<ChangeQuery>(schemas, &["tenant", "author", "reason", "rule"])
            .no_content("All overrides of the client, or that of `rule`, are removed.")
            .error(ApiErrorKind::NotFound, NO_OVERRIDE)
            .store_errors(),
        of_client(
            "get",
            "/admin/external/clients/{id}/stats",
            "stats",
            "Get the counters of a client",
        )
        .query::<ChangeQuery>(schemas, &CHANGE[..1])
        .json::<Stats>(schemas, 200, "The counters of the client.")
        .store_errors(),
        of_client(
            "post",
            "/admin/external/clients/{id}/reset",
            "reset",
            "Reset the counters of a client",
        )
        .query::<ChangeQuery>(schemas, &CHANGE)
        .no_content("The counters are reset.")
        .store_errors(),
        operation("get", "/admin/overrides", "overrides", "List the overrides")
            .query::<ListQuery>(schemas, &["limit", "cursor", "prefix", "tenant"])
            .describe("limit", "The maximum number of clients; a page has all overrides of each.")
            .describe("prefix", "Only clients whose id starts with this text.")
            .describe("tenant", TENANT)
            .json::<OverrideList<'_>>(schemas, 200, "One page."),
        operation("get", "/admin/audit", "audit", "Read the audit log, newest entry first")
            .query::<ListQuery>(schemas, &["limit", "cursor"])
            .json::<AuditPage>(schemas, 200, "One page.")
            .store_errors(),
        operation("post", "/admin/policy/reload", "reload", "Reload the policy file")
            .query::<ChangeQuery>(schemas, &CHANGE[1..])
            .json::<ReloadReply>(schemas, 200, "The policy is active.")
            .error(
                ApiErrorKind::Unprocessable,
                "The file is invalid, or no file is configured. The previous policy stays active.",
            )
            .store_errors(),
    ]
}

fn operation(method: &'static str, path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(method, path, id, "administration", summary)
        .access(&["admin", "session"])
        .invalid("The request is invalid; nothing was changed.")
        .error(ApiErrorKind::Forbidden, "The request comes from a page of another site.")
}

fn of_client(method: &'static str, path: &'static str, id: &str, summary: &str) -> Operation {
    let max = tollgate::MAX_FACT_LENGTH;
    let description = "The value of the fact `client`.";
    let schema =
        json!({ "type": "string", "minLength": 1, "maxLength": max, "description": description });
    operation(method, path, id, summary).parameter("id", "path", schema)
}

fn put_limits(schemas: &mut Schemas) -> Operation {
    let example = json!({
        "limits": [{ "limit": 20, "window_ms": 60_000 }],
        "rule": "default",
        "reason": "the sale of the year",
        "author": "kim",
        "expires_at": null,
    });
    of_client("put", CLIENT_LIMITS, "putLimits", "Set the override of a client")
        .description(
            "The override is for one rule: the one it names, or the only one that can apply to the client. Each limit \
             replaces the rule's limit with the same window or name; otherwise it is an additional token bucket. The \
             rule's other limits stay, unless `only` is true. It replaces the client's previous override of the rule. \
             Used quota stays used, unless `fresh` is true. If the rule is ambiguous, the response is 400 with the \
             `candidates`. The override is active on this node immediately and on all nodes within a second.",
        )
        .query::<ChangeQuery>(schemas, &["tenant", "author", "reason", "dry_run"])
        .body::<OverrideBody<'_>>(schemas, &example)
        .json::<SetOverrideResponse<'_>>(
            schemas,
            200,
            "The override, with the limits that it replaces and keeps. A dry run changes nothing.",
        )
        .store_errors()
}
