//! `TOLLGATE.…` commands: their arguments and replies.

use tollgate::{Costs, Facts, Outcome, Query, Request, Status, Timestamp, Verdict, rounding};

use super::decode::Arguments;
use super::encode::Replies;
use super::error_reply::ErrorReply;
use super::numbers::{MAX_NUMBER, parse_integer, signed};
use crate::api::Service;
use crate::error::ApiError;
use crate::node::overrides::{CLIENT, Client, TENANT};
use crate::wire::costs::Amount;

const SYNTAX: &str = "syntax error: expected name=value, COST n or COST unit=n";

/// Reads `key|name=value… [COST n | COST unit=n…]`. A first argument without `=` is the key, which is short for
/// `client=KEY`.
pub(super) fn read_query<'a>(arguments: &Arguments<'a>) -> Result<Query<'a>, ErrorReply> {
    read_query_from(arguments.from(1), SYNTAX)
}

/// As [`read_query`], from the arguments after the name. `syntax` is the error about any other argument.
pub(super) fn read_query_from<'a>(
    arguments: impl Iterator<Item = &'a [u8]>,
    syntax: &'static str,
) -> Result<Query<'a>, ErrorReply> {
    let (mut facts, mut costs) = (Facts::new(), CostArguments::default());
    let mut rest = arguments.enumerate();
    while let Some((position, argument)) = rest.next() {
        if let Some((name, value)) = split_fact(argument) {
            facts.insert(fact_name(name)?, value).map_err(|error| invalid(error.to_string()))?;
        } else if position == 0 {
            let inserted = facts.insert(CLIENT, argument);
            inserted.map_err(|error| ApiError::invalid(error.reason()).at("key"))?;
        } else if argument.eq_ignore_ascii_case(b"COST") {
            costs.read(rest.next().map(|(_, amount)| amount))?;
        } else {
            return Err(invalid(syntax));
        }
    }
    Ok(Query::ByPolicy(Request::new(facts).with_costs(costs.build()?)))
}

/// The amounts after `COST`.
#[derive(Debug, Default)]
pub(super) struct CostArguments {
    requests: Option<u64>,
    of_units: Vec<Amount>,
}

impl CostArguments {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_none() && self.of_units.is_empty()
    }

    /// Returns whether there is nothing but `COST 0`.
    pub(super) fn is_zero_requests(&self) -> bool {
        self.requests == Some(0) && self.of_units.is_empty()
    }

    /// Reads an amount: `n` or `unit=n`.
    pub(super) fn read(&mut self, amount: Option<&[u8]>) -> Result<(), ErrorReply> {
        match read_amount(amount)? {
            Amount::Requests(_) if self.requests.is_some() => Err(invalid("COST is given twice")),
            Amount::Requests(amount) => {
                self.requests = Some(amount);
                Ok(())
            }
            of_unit @ Amount::OfUnit(..) => {
                self.of_units.push(of_unit);
                Ok(())
            }
        }
    }

    /// Returns the costs; one request without amounts.
    pub(super) fn build(mut self) -> Result<Costs, ErrorReply> {
        match self.requests {
            // Most commands cost a number of requests, which needs no list.
            Some(requests) if self.of_units.is_empty() => Ok(Costs::requests(requests)),
            requests => {
                self.of_units.extend(requests.map(Amount::Requests));
                Amount::costs(&self.of_units).map_err(cost_error)
            }
        }
    }
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

/// Reads the amount after `COST`: `n` or `unit=n`.
fn read_amount(amount: Option<&[u8]>) -> Result<Amount, ErrorReply> {
    let amount = amount.unwrap_or_default();
    if let Some(requests) = parse_integer(amount).and_then(|number| u64::try_from(number).ok())
        && requests <= MAX_NUMBER
    {
        return Ok(Amount::Requests(requests));
    }
    Amount::parse(&String::from_utf8_lossy(amount)).map_err(cost_error)
}

fn cost_error(reason: String) -> ErrorReply {
    ApiError::invalid(reason).at("cost").into()
}

pub(super) fn invalid(detail: impl Into<String>) -> ErrorReply {
    ApiError::invalid(detail).into()
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
    let handle = outcome.permit.as_ref().map(|permit| Handle {
        text: permit.to_string(),
        expires_at: outcome.expires_at.map_or(-1, unix_millis),
    });
    encode_fields(outcome, outcome.decision.verdict(), handle, replies);
}

/// The last two fields of a decision: a permit or a reservation, and its expiry in Unix milliseconds.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) text: String,
    pub(super) expires_at: i64,
}

/// Encodes the fields of a decision with this verdict.
pub(super) fn encode_fields(
    outcome: &Outcome<'_, '_>,
    verdict: Verdict,
    handle: Option<Handle>,
    replies: &mut Replies,
) {
    let deciding = outcome.decision.deciding();
    replies.array(if handle.is_some() { 9 } else { 7 });
    replies.integer(u8::from(verdict.is_allowed()));
    // The burst of a token bucket, so that `remaining` never exceeds it.
    replies.integer(deciding.map_or(-1, |status| signed(status.limit().capacity())));
    replies.integer(deciding.map_or(-1, |status| signed(status.remaining())));
    replies.integer(verdict.retry_after().map_or(-1, |wait| signed(rounding::millis(wait))));
    let reset_after = deciding.map(Status::reset_after).unwrap_or_default();
    replies.integer(rounding::millis(reset_after));
    replies.bulk(outcome.rule());
    replies.bulk(deciding.map_or("", |status| status.limit().name()));
    if let Some(handle) = handle {
        replies.bulk(handle.text);
        replies.integer(handle.expires_at);
    }
}

/// Returns the milliseconds since the Unix epoch, rounded down: slots never expire earlier.
pub(super) fn unix_millis(time: Timestamp) -> i64 {
    signed(time.as_micros() / 1000)
}
