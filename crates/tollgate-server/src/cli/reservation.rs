//! `tollgate reserve` and `tollgate settle`.

use hyper::Method;
use serde_json::{Value, json};
use tollgate::{Costs, policy};

use super::Exit;
use super::check;
use super::facts::{amounts, request_fields};
use super::failure::fail;
use super::request::{NOT_TOLLGATE, report_error, send, token};
use super::reservation_args::{ReserveArgs, SettleArgs};
use super::reservation_response::{ReserveReply, SettleReply};
use super::stdout::print;
use crate::wire::costs::Amount;

pub(super) fn reserve(args: &ReserveArgs) -> Exit {
    let (body, costs) = match reserve_body(args) {
        Ok(request) => request,
        Err(reason) => return fail(Exit::Usage, &reason),
    };
    let token = match token("TOLLGATE_CHECK_TOKEN", "TOLLGATE_CHECK_TOKEN_FILE") {
        Ok(token) => token,
        Err(error) => return fail(Exit::Usage, &error.to_string()),
    };
    match send(&args.server, token.as_deref(), (Method::POST, "/reserve", Some(body))) {
        Ok((200, body)) => print_reserved(&body, &costs, args),
        Ok((status, body)) => check::report_error(status, &body, &costs),
        Err(exit) => exit,
    }
}

fn reserve_body(args: &ReserveArgs) -> Result<(String, Costs), String> {
    let costs = Amount::costs(&args.cost).map_err(|reason| format!("--cost: {reason}"))?;
    let mut body = request_fields(&args.key_or_facts, &costs)?;
    if let Some(text) = &args.ttl {
        let ttl = policy::parse_duration(text).map_err(|reason| format!("--ttl: {reason}"))?;
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        body.insert("ttl_ms".to_owned(), Value::from(millis));
    }
    if let Some(id) = &args.id {
        body.insert("id".to_owned(), Value::from(id.as_str()));
    }
    Ok((Value::Object(body).to_string(), costs))
}

fn print_reserved(body: &str, costs: &Costs, args: &ReserveArgs) -> Exit {
    let reply: ReserveReply = match serde_json::from_str(body) {
        Ok(reply) => reply,
        Err(error) => return fail(Exit::NoAnswer, &format!("{NOT_TOLLGATE} ({error})")),
    };
    if args.json {
        print(&format!("{body}\n"));
    } else {
        print(&format!("{}\n", reply.lines(costs).join("\n")));
    }
    if reply.is_reserved() { Exit::Success } else { Exit::Refused }
}

pub(super) fn settle(args: &SettleArgs) -> Exit {
    let body = match settle_body(args) {
        Ok(body) => body,
        Err(reason) => return fail(Exit::Usage, &reason),
    };
    let token = match token("TOLLGATE_CHECK_TOKEN", "TOLLGATE_CHECK_TOKEN_FILE") {
        Ok(token) => token,
        Err(error) => return fail(Exit::Usage, &error.to_string()),
    };
    match send(&args.server, token.as_deref(), (Method::POST, "/settle", Some(body))) {
        Ok((200, body)) => print_settled(&body, args),
        Ok(reply) => report_error(&reply),
        Err(exit) => exit,
    }
}

fn settle_body(args: &SettleArgs) -> Result<String, String> {
    let costs = Amount::costs(&args.cost).map_err(|reason| format!("--cost: {reason}"))?;
    let reservation = &args.reservation;
    let body = match &args.cost[..] {
        [] => json!({"reservation": reservation, "cost": 0}),
        [Amount::Requests(amount)] => json!({"reservation": reservation, "cost": amount}),
        // Also for `requests=0` alone, which keeps the estimates of the other units.
        _ => json!({"reservation": reservation, "costs": amounts(&costs)}),
    };
    Ok(body.to_string())
}

fn print_settled(body: &str, args: &SettleArgs) -> Exit {
    let reply: SettleReply = match serde_json::from_str(body) {
        Ok(reply) => reply,
        Err(error) => return fail(Exit::NoAnswer, &format!("{NOT_TOLLGATE} ({error})")),
    };
    if args.json {
        print(&format!("{body}\n"));
    } else {
        print(&format!("{}\n", reply.line()));
    }
    Exit::Success
}
