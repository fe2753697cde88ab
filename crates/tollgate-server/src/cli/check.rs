//! `tollgate check`.

use serde_json::Value;
use tokio::runtime;

use super::Exit;
use super::args::CheckArgs;
use super::facts::body_of;
use crate::client::{self, AskError};

pub(super) fn run(args: &CheckArgs) -> Exit {
    let body = match body_of(&args.what, args.cost) {
        Ok(body) => body,
        Err(reason) => return usage(&reason),
    };
    let Ok(runtime) = runtime::Builder::new_current_thread().enable_all().build() else {
        eprintln!("tollgate: the runtime could not be started");
        return Exit::NoAnswer;
    };
    match runtime.block_on(client::post(&args.server, "/check", body)) {
        Ok((200, answer)) => tell(&answer, args.json),
        Ok((status, answer)) => told_otherwise(status, &answer, args.json),
        Err(AskError::Url(reason)) => usage(&reason),
        Err(AskError::NoAnswer(reason)) => {
            eprintln!("tollgate: no answer from {}: {reason}", args.server);
            Exit::NoAnswer
        }
    }
}

fn usage(reason: &str) -> Exit {
    eprintln!("tollgate: {reason}");
    Exit::Usage
}

fn tell(answer: &str, json: bool) -> Exit {
    let Ok(value) = serde_json::from_str::<Value>(answer) else {
        eprintln!("tollgate: the answer is not JSON; is that a tollgate service?");
        return Exit::NoAnswer;
    };
    let Some(allowed) = value["allowed"].as_bool() else {
        eprintln!("tollgate: the answer tells no verdict; is that a tollgate service?");
        return Exit::NoAnswer;
    };
    if json {
        println!("{answer}");
    } else {
        println!("{}", sentence(&value));
    }
    if allowed { Exit::Success } else { Exit::Refused }
}

/// A wrong question is usage; a service that cannot answer is no answer.
fn told_otherwise(status: u16, answer: &str, json: bool) -> Exit {
    let value: Value = serde_json::from_str(answer).unwrap_or_default();
    if json && value.is_object() {
        println!("{answer}");
    }
    let detail = value["detail"].as_str().unwrap_or("the service did not say why");
    eprintln!("tollgate: {status}: {detail}");
    match status {
        400..=499 => Exit::Usage,
        _ => Exit::NoAnswer,
    }
}

/// The answer in a line.
pub(super) fn sentence(answer: &Value) -> String {
    let rule = answer["rule"].as_str().unwrap_or("?");
    let deciding = deciding(answer);
    let by = match deciding {
        Some(name) => format!("rule {rule}, limit {name}"),
        None => format!("rule {rule}"),
    };
    let number = |field: &str| answer[field].as_u64();
    match (answer["verdict"].as_str(), number("remaining")) {
        (Some("allow"), Some(left)) => {
            let whole = number("burst").or(number("limit")).unwrap_or(left);
            format!("allowed: {left} of {whole} left ({by})")
        }
        (Some("allow"), None) => format!("allowed: no limit ({by})"),
        (Some("deny"), _) => {
            let seconds = &answer["retry_after"];
            format!("refused: retry in {seconds} s ({by})")
        }
        _ => format!("refused: it never fits, waiting will not help ({by})"),
    }
}

/// The name of the limit whose figures stand at the top.
fn deciding(answer: &Value) -> Option<&str> {
    let limits = answer["limits"].as_array()?;
    let stands_out = |limit: &&Value| {
        limit["mode"] == "enforce"
            && limit["rule"] == answer["rule"]
            && limit["allowed"] == answer["allowed"]
            && ["remaining", "reset_after_ms"].iter().all(|field| limit[field] == answer[field])
    };
    limits.iter().find(stands_out)?["name"].as_str()
}
