//! `TOLLGATE.…` commands: their arguments and replies.

use tollgate::{Facts, Outcome, Permit, PermitError, Query, Request, Status, Timestamp, rounding};

use super::decode::Arguments;
use super::encode::Replies;
use super::error_reply::ErrorReply;
use super::numbers::{MAX_NUMBER, parse_integer, signed};
use crate::api::Service;
use crate::error::ApiError;
use crate::node::overrides::{CLIENT, Client, TENANT};

/// Reads `key|name=value… [COST n]`. A first argument without `=` is the key, which is short for `client=KEY`.
pub(super) fn read_query<'a>(arguments: &Arguments<'a>) -> Result<Query<'a>, ErrorReply> {
    let (mut facts, mut cost) = (Facts::new(), None);
    let mut rest = arguments.from(1).enumerate();
    while let Some((position, argument)) = rest.next() {
        if let Some((name, value)) = split_fact(argument) {
            facts.insert(fact_name(name)?, value).map_err(|error| invalid(error.to_string()))?;
        } else if position == 0 {
            let inserted = facts.insert(CLIENT, argument);
            inserted.map_err(|error| ApiError::invalid(error.reason()).at("key"))?;
        } else if argument.eq_ignore_ascii_case(b"COST") {
            if cost.is_some() {
                return Err(invalid("COST is given twice"));
            }
            cost = Some(read_cost(rest.next().map(|(_, cost)| cost))?);
        } else {
            return Err(invalid("syntax error: expected name=value or COST n"));
        }
    }
    Ok(Query::ByPolicy(Request::new(facts).with_cost(cost.unwrap_or(1))))
}

/// Splits an argument at its first `=`; `None` if there is none.
fn split_fact(argument: &[u8]) -> Option<(&[u8], &[u8])> {
    let position = argument.iter().position(|byte| *byte == b'=')?;
    let (name, value) = argument.split_at_checked(position)?;
    Some((name, value.get(1..)?))
}

/// Names are text; values are any bytes.
fn fact_name(name: &[u8]) -> Result<&str, ErrorReply> {
    std::str::from_utf8(name).map_err(|_| invalid("facts: a name is not UTF-8"))
}

fn read_cost(cost: Option<&[u8]>) -> Result<u64, ErrorReply> {
    let cost = cost.and_then(parse_integer).and_then(|cost| u64::try_from(cost).ok());
    cost.filter(|cost| *cost <= MAX_NUMBER)
        .ok_or_else(|| invalid(format!("cost: must be an integer from 0 to {MAX_NUMBER}")))
}

fn invalid(detail: impl Into<String>) -> ErrorReply {
    ApiError::invalid(detail).into()
}

/// Reads the permit of `TOLLGATE.RELEASE` and `TOLLGATE.RENEW`.
pub(super) fn read_permit(arguments: &Arguments<'_>) -> Result<Permit, ErrorReply> {
    let text = std::str::from_utf8(arguments.get(1).unwrap_or_default());
    let text = text.map_err(|_| ApiError::invalid("is not UTF-8").at("permit"))?;
    let permit = text.parse().map_err(|error: PermitError| error.to_string());
    permit.map_err(|reason| ApiError::invalid(reason).at("permit").into())
}

/// Reads the client of `TOLLGATE.RESET`: a key, or `client=KEY`, and optionally `tenant=TENANT`.
pub(super) fn read_client(
    service: &Service,
    arguments: &Arguments<'_>,
) -> Result<Client, ErrorReply> {
    let (mut id, mut tenant) = (None, None);
    for (position, argument) in arguments.from(1).enumerate() {
        let (field, value) = match split_fact(argument) {
            Some((name, value)) if name == CLIENT.as_bytes() => (&mut id, value),
            Some((name, value)) if name == TENANT.as_bytes() => (&mut tenant, value),
            None if position == 0 => (&mut id, argument),
            _ => return Err(invalid("syntax error: expected key|client=KEY [tenant=TENANT]")),
        };
        let text = String::from_utf8(value.to_vec());
        let text = text.map_err(|_| invalid("the name of a client or tenant must be UTF-8"))?;
        if field.replace(text).is_some() {
            return Err(invalid("the client or the tenant is given twice"));
        }
    }
    let id = id.ok_or_else(|| invalid("the client is missing: send a key or client=KEY"))?;
    Ok(service.client(id, tenant)?)
}

/// Encodes a decision:
/// `[allowed, limit, remaining, retry_after_ms, reset_after_ms, rule, limit_name]`, with permit and `expires_at_ms` if
/// slots are held.
pub(super) fn encode_decision(outcome: &Outcome<'_, '_>, replies: &mut Replies) {
    let deciding = outcome.decision.deciding();
    let verdict = outcome.decision.verdict();
    replies.array(if outcome.permit.is_some() { 9 } else { 7 });
    replies.integer(u8::from(verdict.is_allowed()));
    // The burst of a token bucket, so that `remaining` never exceeds it.
    replies.integer(deciding.map_or(-1, |status| signed(status.limit().capacity())));
    replies.integer(deciding.map_or(-1, |status| signed(status.remaining())));
    replies.integer(verdict.retry_after().map_or(-1, |wait| signed(rounding::millis(wait))));
    let reset_after = deciding.map(Status::reset_after).unwrap_or_default();
    replies.integer(rounding::millis(reset_after));
    replies.bulk(outcome.rule());
    replies.bulk(deciding.map_or("", |status| status.limit().name()));
    if let Some(permit) = &outcome.permit {
        replies.bulk(permit.to_string());
        replies.integer(outcome.expires_at.map_or(-1, unix_millis));
    }
}

/// Returns the milliseconds since the Unix epoch, rounded down: slots never expire earlier.
pub(super) fn unix_millis(time: Timestamp) -> i64 {
    signed(time.as_micros() / 1000)
}
