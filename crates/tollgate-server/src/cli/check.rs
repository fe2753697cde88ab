//! `tollgate check`.

use hyper::Method;
use tollgate::Costs;

use super::Exit;
use super::args::CheckArgs;
use super::facts::request_body;
use super::failure::{fail, fail_with};
use super::request::{NOT_TOLLGATE, send, token};
use super::response::{CheckReply, Problem};
use super::stdout::print;
use crate::wire::costs::Amount;

pub(super) fn run(args: &CheckArgs) -> Exit {
    let request = Amount::costs(&args.cost)
        .map_err(|reason| format!("--cost: {reason}"))
        .and_then(|costs| Ok((request_body(&args.key_or_facts, &costs)?, costs)));
    let (body, costs) = match request {
        Ok(request) => request,
        Err(reason) => return fail(Exit::Usage, &reason),
    };
    let token = match token("TOLLGATE_CHECK_TOKEN", "TOLLGATE_CHECK_TOKEN_FILE") {
        Ok(token) => token,
        Err(error) => return fail(Exit::Usage, &error.to_string()),
    };
    match send(&args.server, token.as_deref(), (Method::POST, "/check", Some(body))) {
        Ok((200, body)) => print_decision(&body, &costs, args),
        Ok((status, body)) => report_error(status, &body, &costs),
        Err(exit) => exit,
    }
}

fn print_decision(body: &str, costs: &Costs, args: &CheckArgs) -> Exit {
    let reply: CheckReply = match serde_json::from_str(body) {
        Ok(reply) => reply,
        Err(error) => return fail(Exit::NoAnswer, &format!("{NOT_TOLLGATE} ({error})")),
    };
    if args.json {
        print(&format!("{body}\n"));
    } else {
        print(&format!("{}\n", reply.line(costs)));
    }
    if reply.allowed { Exit::Success } else { Exit::Refused }
}

/// Reports an error response. A 4xx problem is a usage error; everything else counts as no answer.
pub(super) fn report_error(status: u16, body: &str, costs: &Costs) -> Exit {
    if let Ok(problem) = serde_json::from_str::<Problem>(body) {
        let exit = if (400..500).contains(&status) { Exit::Usage } else { Exit::NoAnswer };
        return fail_with(exit, &format!("{status}: {}", problem.detail), Some(body));
    }
    match serde_json::from_str::<CheckReply>(body) {
        // The store is lost, and the rule has `on_store_loss: deny`.
        Ok(reply) => {
            let message = format!("{status}: {}", reply.line(costs));
            fail_with(Exit::NoAnswer, &message, Some(body))
        }
        Err(_) => fail(Exit::NoAnswer, &format!("{status}: {NOT_TOLLGATE}")),
    }
}
