//! `tollgate override` and `tollgate reset`.

use hyper::Method;
use serde_json::{Value, json};
use tollgate::{Clock, OverrideLimit, SystemClock, Timestamp, policy, rounding};

use super::failure::fail;
use super::override_response::{ClientReply, OverridePage};
use super::override_set_response::SetReply;
use super::request::{NOT_TOLLGATE, Reply, report_error, send, token};
use super::rule_candidates;
use super::stdout::print;
use super::{ChangeArgs, Exit, OverrideCommand, ResetArgs, ServerArgs, SetArgs};
use crate::wire::time::rfc3339;

const NO_TOKEN: &str = "no admin token: set TOLLGATE_ADMIN_TOKEN, or set TOLLGATE_ADMIN_TOKEN_FILE to the path of a \
                        file that contains it";
const NO_ADMIN_API: &str =
    "the service has no admin API: it was started without TOLLGATE_ADMIN_TOKEN";

const MICROS_PER_SECOND: u64 = 1_000_000;

/// Runs `tollgate override …`.
pub(super) fn run(command: &OverrideCommand) -> Exit {
    let result = match command {
        OverrideCommand::Set(args) => set(args),
        OverrideCommand::Get { client, tenant, json, server } => {
            let path = client_path(client, "limits", &[("tenant", tenant.as_deref())]);
            send_as_admin(server, (Method::GET, &path, None)).map(|reply| show(&reply, *json))
        }
        OverrideCommand::Rm { client, rule, change, server } => {
            let query = [&change.query()[..], &[("rule", rule.as_deref())]].concat();
            let path = client_path(client, "limits", &query);
            send_as_admin(server, (Method::DELETE, &path, None)).map(|_| {
                print(&removed_text(rule.as_deref()));
                Exit::Success
            })
        }
        OverrideCommand::List { prefix, json, server } => list(server, prefix.as_deref(), *json),
    };
    result.unwrap_or_else(|exit| exit)
}

/// Runs `tollgate reset`.
pub(super) fn reset(args: &ResetArgs) -> Exit {
    let path = client_path(&args.client, "reset", &args.change.query());
    match send_as_admin(&args.server, (Method::POST, &path, None)) {
        Ok(_) => {
            print(&format!("usage of {} reset\n", args.client));
            Exit::Success
        }
        Err(exit) => exit,
    }
}

fn removed_text(rule: Option<&str>) -> String {
    match rule {
        Some(rule) => format!("override of rule {rule} removed\n"),
        None => "override removed; policy limits apply\n".to_owned(),
    }
}

fn set(args: &SetArgs) -> Result<Exit, Exit> {
    let body = override_body(args).map_err(|reason| usage_error(&reason))?;
    let dry_run = args.dry_run.then_some("true");
    let query = [&args.change.query()[..], &[("dry_run", dry_run)]].concat();
    let path = client_path(&args.client, "limits", &query);
    let reply = send_with_token(&args.server, (Method::PUT, &path, Some(body)))?;
    let (_, body) = accepted(reply).map_err(|reply| {
        let exit = rejection(&reply);
        if let Some(commands) = rule_candidates::commands(&reply.1, std::env::args()) {
            eprint!("{commands}");
        }
        exit
    })?;
    if args.json {
        print(&format!("{body}\n"));
        return Ok(Exit::Success);
    }
    let reply: SetReply = serde_json::from_str(&body).map_err(|error| unreadable(&error))?;
    print(&reply.text(args));
    Ok(Exit::Success)
}

fn usage_error(reason: &str) -> Exit {
    fail(Exit::Usage, reason)
}

fn override_body(args: &SetArgs) -> Result<String, String> {
    let limits = args.limits.iter().map(|text| limit_body(text, args));
    let limits: Vec<Value> = limits.collect::<Result<_, _>>()?;
    if args.burst.is_some() && limits.len() > 1 {
        let reason = "--burst: allowed with one RATE only; set several limits over the HTTP API";
        return Err(reason.to_owned());
    }
    let expires_at = match (&args.duration, &args.until) {
        (Some(text), _) => {
            let length =
                policy::parse_duration(text).map_err(|reason| format!("--for: {reason}"))?;
            if length.is_zero() {
                return Err("--for: must be longer than 0".to_owned());
            }
            let expiry = (SystemClock::new().now() + length).as_micros();
            // Whole seconds are easier to read.
            let expiry = expiry.div_ceil(MICROS_PER_SECOND).saturating_mul(MICROS_PER_SECOND);
            Some(rfc3339(Timestamp::from_micros(expiry)))
        }
        (None, until) => until.clone(),
    };
    let body = json!({
        "limits": limits,
        "rule": args.rule,
        "all_rules": args.all_rules,
        "only": args.only,
        "fresh": args.fresh,
        "expires_at": expires_at,
    });
    Ok(body.to_string())
}

fn limit_body(text: &str, args: &SetArgs) -> Result<Value, String> {
    let parsed: OverrideLimit = text.parse().map_err(|error| format!("{text:?}: {error}"))?;
    let window = parsed.window.map(rounding::millis);
    let mut limit = json!({"limit": parsed.count, "window_ms": window});
    if let (Some(fields), Some(burst)) = (limit.as_object_mut(), args.burst) {
        fields.insert("burst".to_owned(), burst.into());
    }
    Ok(limit)
}

/// Sends a request with the admin token. Reports any response other than 2xx and returns the exit code.
fn send_as_admin(
    server: &ServerArgs,
    request: (Method, &str, Option<String>),
) -> Result<Reply, Exit> {
    accepted(send_with_token(server, request)?).map_err(|reply| rejection(&reply))
}

/// Sends a request with the admin token. Reports a missing token or response and returns the exit code.
fn send_with_token(
    server: &ServerArgs,
    request: (Method, &str, Option<String>),
) -> Result<Reply, Exit> {
    let token = token("TOLLGATE_ADMIN_TOKEN", "TOLLGATE_ADMIN_TOKEN_FILE");
    let token = token.map_err(|error| usage_error(&error.to_string()))?;
    let token = token.ok_or_else(|| usage_error(NO_TOKEN))?;
    send(server, Some(&token), request)
}

/// Returns a 2xx response, or any other as an error.
fn accepted(reply: Reply) -> Result<Reply, Reply> {
    if (200..300).contains(&reply.0) { Ok(reply) } else { Err(reply) }
}

/// Reports a response other than 2xx and returns the exit code.
fn rejection(reply: &Reply) -> Exit {
    match reply {
        (404, body) if body.contains("no resource at") => usage_error(NO_ADMIN_API),
        _ => report_error(reply),
    }
}

/// Returns the path of an admin endpoint of a client, with a query string.
fn client_path(client: &str, endpoint: &str, query: &[(&str, Option<&str>)]) -> String {
    let mut path = format!("/admin/external/clients/{}/{endpoint}", percent_encode(client));
    push_query(&mut path, query);
    path
}

fn push_query(path: &mut String, query: &[(&str, Option<&str>)]) {
    let mut separator = '?';
    for (name, value) in query {
        if let Some(value) = value {
            path.push(separator);
            path.push_str(&format!("{name}={}", percent_encode(value)));
            separator = '&';
        }
    }
}

/// Percent-encodes everything except the unreserved characters of RFC 3986.
fn percent_encode(text: &str) -> String {
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    // A segment of only dots would be resolved as a relative path.
    match text {
        "." | ".." => text.replace('.', "%2E"),
        _ => text.bytes().map(encode).collect(),
    }
}

impl ChangeArgs {
    fn query(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("tenant", self.tenant.as_deref()),
            ("author", self.author.as_deref()),
            ("reason", self.reason.as_deref()),
        ]
    }
}

fn show((_, body): &Reply, is_json: bool) -> Exit {
    if is_json {
        print(&format!("{body}\n"));
        return Exit::Success;
    }
    match serde_json::from_str::<ClientReply>(body) {
        Ok(reply) => {
            reply.overrides.iter().for_each(|entry| print(&format!("{}\n", entry.line())));
            Exit::Success
        }
        Err(error) => unreadable(&error),
    }
}

fn unreadable(error: &serde_json::Error) -> Exit {
    fail(Exit::NoAnswer, &format!("{NOT_TOLLGATE} ({error})"))
}

/// Prints all pages of the override list.
fn list(server: &ServerArgs, prefix: Option<&str>, is_json: bool) -> Result<Exit, Exit> {
    let mut cursor: Option<String> = None;
    loop {
        let mut path = "/admin/overrides".to_owned();
        push_query(&mut path, &[("prefix", prefix), ("cursor", cursor.as_deref())]);
        let (_, body) = send_as_admin(server, (Method::GET, &path, None))?;
        let page: OverridePage = serde_json::from_str(&body).map_err(|error| unreadable(&error))?;
        if is_json {
            print(&format!("{body}\n"));
        } else {
            page.overrides.iter().for_each(|entry| print(&format!("{}\n", entry.line())));
        }
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(Exit::Success);
        }
    }
}
