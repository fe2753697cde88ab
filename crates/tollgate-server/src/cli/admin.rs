//! `tollgate override` and `tollgate reset`.

use hyper::Method;
use serde_json::{Value, json};
use tollgate::{Clock, OverrideLimit, SystemClock, policy, rounding};

use super::asking::{Answered, ask, otherwise, token};
use super::override_response::{Page, Shown};
use super::stdout::say;
use super::{Exit, OverrideCommand, ResetArgs, ServerArgs, SetArgs, WhoArgs};
use crate::wire::time::rfc3339;

const NO_TOKEN: &str = "there is no admin token: set TOLLGATE_ADMIN_TOKEN, or TOLLGATE_ADMIN_TOKEN_FILE to a file \
                        that holds it";
const ABSENT: &str =
    "that service has nothing for administrators: it was started without TOLLGATE_ADMIN_TOKEN";

/// Runs `tollgate override …`.
pub(super) fn run(command: &OverrideCommand) -> Exit {
    let done = match command {
        OverrideCommand::Set(args) => set(args),
        OverrideCommand::Get { client, tenant, json, server } => {
            let path = path(client, "limits", &[("tenant", tenant.as_deref())]);
            asked(server, (Method::GET, &path, None)).map(|answer| show(&answer, *json))
        }
        OverrideCommand::Rm { client, who, server } => {
            let path = path(client, "limits", &who.pairs());
            asked(server, (Method::DELETE, &path, None)).map(|_| {
                say(&format!("{client} has the limits of everyone again\n"));
                Exit::Success
            })
        }
        OverrideCommand::List { prefix, json, server } => list(server, prefix.as_deref(), *json),
    };
    done.unwrap_or_else(|exit| exit)
}

/// Runs `tollgate reset`.
pub(super) fn reset(args: &ResetArgs) -> Exit {
    let path = path(&args.client, "reset", &args.who.pairs());
    let asked = asked(&args.server, (Method::POST, &path, None));
    asked.map_or_else(
        |exit| exit,
        |_| {
            say(&format!("{} has used nothing\n", args.client));
            Exit::Success
        },
    )
}

fn set(args: &SetArgs) -> Result<Exit, Exit> {
    let body = body(args).map_err(|reason| usage(&reason))?;
    let path = path(&args.client, "limits", &args.who.pairs());
    let answer = asked(&args.server, (Method::PUT, &path, Some(body)))?;
    Ok(show(&answer, args.json))
}

fn usage(reason: &str) -> Exit {
    eprintln!("tollgate: {reason}");
    Exit::Usage
}

fn body(args: &SetArgs) -> Result<String, String> {
    let limits = args.limits.iter().map(|text| limit(text, args));
    let limits: Vec<Value> = limits.collect::<Result<_, _>>()?;
    if args.burst.is_some() && limits.len() > 1 {
        return Err("--burst: is for one limit; give the others over HTTP".to_owned());
    }
    let expires_at = match (&args.lasting, &args.until) {
        (Some(text), _) => {
            let length =
                policy::parse_duration(text).map_err(|reason| format!("--for: {reason}"))?;
            Some(rfc3339(SystemClock::new().now() + length))
        }
        (None, until) => until.clone(),
    };
    Ok(json!({"limits": limits, "rule": args.rule, "expires_at": expires_at}).to_string())
}

fn limit(text: &str, args: &SetArgs) -> Result<Value, String> {
    let own: OverrideLimit = text.parse().map_err(|error| format!("{text:?}: {error}"))?;
    let window = own.window.map(rounding::millis);
    let mut limit = json!({"limit": own.count, "window_ms": window});
    if let (Some(fields), Some(burst)) = (limit.as_object_mut(), args.burst) {
        fields.insert("burst".to_owned(), burst.into());
    }
    Ok(limit)
}

/// Asks as an administrator. What is no success ends the command.
fn asked(server: &ServerArgs, question: (Method, &str, Option<String>)) -> Result<Answered, Exit> {
    let token = token("TOLLGATE_ADMIN_TOKEN", "TOLLGATE_ADMIN_TOKEN_FILE");
    let token = token.map_err(|error| usage(&error.to_string()))?;
    let token = token.ok_or_else(|| usage(NO_TOKEN))?;
    let answer = ask(server, Some(&token), question)?;
    match &answer {
        (200..300, _) => Ok(answer),
        (404, text) if text.contains("nothing is served at") => Err(usage(ABSENT)),
        _ => Err(otherwise(&answer)),
    }
}

/// A path of a client, with what else is said.
fn path(client: &str, what: &str, pairs: &[(&str, Option<&str>)]) -> String {
    let mut path = format!("/admin/external/clients/{}/{what}", escaped(client));
    push_query(&mut path, pairs);
    path
}

fn push_query(path: &mut String, pairs: &[(&str, Option<&str>)]) {
    let mut separator = '?';
    for (name, value) in pairs {
        if let Some(value) = value {
            path.push(separator);
            path.push_str(&format!("{name}={}", escaped(value)));
            separator = '&';
        }
    }
}

/// Percent-escaped, all that could mean something else.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    // A path of dots alone would be walked.
    match text {
        "." | ".." => text.replace('.', "%2E"),
        _ => text.bytes().map(escape).collect(),
    }
}

impl WhoArgs {
    fn pairs(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("tenant", self.tenant.as_deref()),
            ("author", self.author.as_deref()),
            ("reason", self.reason.as_deref()),
        ]
    }
}

fn show((_, answer): &Answered, is_json: bool) -> Exit {
    if is_json {
        say(&format!("{answer}\n"));
        return Exit::Success;
    }
    match serde_json::from_str::<Shown>(answer) {
        Ok(shown) => {
            say(&format!("{}\n", shown.line()));
            Exit::Success
        }
        Err(error) => foreign(&error),
    }
}

fn foreign(error: &serde_json::Error) -> Exit {
    eprintln!("tollgate: that is no answer of a tollgate service: {error}");
    Exit::NoAnswer
}

/// All of them, page by page.
fn list(server: &ServerArgs, prefix: Option<&str>, is_json: bool) -> Result<Exit, Exit> {
    let mut cursor: Option<String> = None;
    loop {
        let mut path = "/admin/overrides".to_owned();
        push_query(&mut path, &[("prefix", prefix), ("cursor", cursor.as_deref())]);
        let (_, answer) = asked(server, (Method::GET, &path, None))?;
        let page: Page = serde_json::from_str(&answer).map_err(|error| foreign(&error))?;
        if is_json {
            say(&format!("{answer}\n"));
        } else {
            page.overrides.iter().for_each(|shown| say(&format!("{}\n", shown.line())));
        }
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(Exit::Success);
        }
    }
}
