//! `tollgate check`.

use hyper::Method;

use super::Exit;
use super::args::CheckArgs;
use super::facts::request_body;
use super::request::{NOT_TOLLGATE, send, token};
use super::response::{CheckReply, Problem};
use super::stdout::print;

pub(super) fn run(args: &CheckArgs) -> Exit {
    let body = match request_body(&args.key_or_facts, args.cost) {
        Ok(body) => body,
        Err(reason) => return usage_error(&reason),
    };
    let token = match token("TOLLGATE_CHECK_TOKEN", "TOLLGATE_CHECK_TOKEN_FILE") {
        Ok(token) => token,
        Err(error) => return usage_error(&error.to_string()),
    };
    match send(&args.server, token.as_deref(), (Method::POST, "/check", Some(body))) {
        Ok((200, body)) => print_decision(&body, args),
        Ok((status, body)) => report_error(status, &body, args),
        Err(exit) => exit,
    }
}

fn usage_error(reason: &str) -> Exit {
    eprintln!("tollgate: {reason}");
    Exit::Usage
}

fn print_decision(body: &str, args: &CheckArgs) -> Exit {
    let reply: CheckReply = match serde_json::from_str(body) {
        Ok(reply) => reply,
        Err(error) => {
            eprintln!("tollgate: {NOT_TOLLGATE} ({error})");
            return Exit::NoAnswer;
        }
    };
    if args.json {
        print(&format!("{body}\n"));
    } else {
        print(&format!("{}\n", reply.line(args.cost)));
    }
    if reply.allowed { Exit::Success } else { Exit::Refused }
}

/// Reports an error response. A 4xx problem is a usage error; everything else counts as no answer.
fn report_error(status: u16, body: &str, args: &CheckArgs) -> Exit {
    if let Ok(problem) = serde_json::from_str::<Problem>(body) {
        if args.json {
            print(&format!("{body}\n"));
        }
        eprintln!("tollgate: {status}: {}", problem.detail);
        return if (400..500).contains(&status) { Exit::Usage } else { Exit::NoAnswer };
    }
    match serde_json::from_str::<CheckReply>(body) {
        // The store is lost, and the rule has `on_store_loss: deny`.
        Ok(reply) => {
            if args.json {
                print(&format!("{body}\n"));
            }
            eprintln!("tollgate: {status}: {}", reply.line(args.cost));
        }
        Err(_) => eprintln!("tollgate: {status}: {NOT_TOLLGATE}"),
    }
    Exit::NoAnswer
}
