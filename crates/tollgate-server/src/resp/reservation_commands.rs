//! `TOLLGATE.RESERVE` and `TOLLGATE.SETTLE`, and the handles of `TOLLGATE.RELEASE` and `TOLLGATE.RENEW`.

use std::time::Duration;

use tollgate::reservation::{FinalCosts, ReservationToken};
use tollgate::{PermitError, Query, ReservationTerms, ReserveOutcome, Verdict};

use super::decode::Arguments;
use super::encode::Replies;
use super::error_reply::ErrorReply;
use super::numbers::{MAX_NUMBER, parse_integer};
use super::policy_commands::{
    CostArguments, Handle, encode_decision, encode_fields, invalid, read_query_from, unix_millis,
};
use crate::api::Held;
use crate::error::ApiError;
use crate::wire::reservation::parse_token;

const SYNTAX: &str = "syntax error: expected name=value, COST n, COST unit=n, TTL ms or ID id";

/// A reservation to make.
#[derive(Debug)]
pub(super) struct ReserveCall<'a> {
    pub(super) query: Query<'a>,
    pub(super) terms: ReservationTerms,
}

/// A reservation to settle.
#[derive(Debug)]
pub(super) struct SettleCall {
    pub(super) token: ReservationToken,
    pub(super) finals: FinalCosts,
}

impl ReserveCall<'_> {
    /// Copies the call, so that it borrows nothing.
    pub(super) fn into_owned(self) -> ReserveCall<'static> {
        ReserveCall { query: self.query.into_owned(), terms: self.terms }
    }
}

/// Reads `key|name=value… [COST n | COST unit=n…] [TTL ms] [ID id]`.
pub(super) fn read_reserve<'a>(arguments: &Arguments<'a>) -> Result<ReserveCall<'a>, ErrorReply> {
    let (mut ttl, mut id, mut others) = (None, None, Vec::new());
    let mut rest = arguments.from(1);
    while let Some(argument) = rest.next() {
        let (option, name) = match argument {
            _ if others.is_empty() => (None, ""),
            ttl_word if ttl_word.eq_ignore_ascii_case(b"TTL") => (Some(&mut ttl), "TTL"),
            id_word if id_word.eq_ignore_ascii_case(b"ID") => (Some(&mut id), "ID"),
            _ => (None, ""),
        };
        let Some(option) = option else {
            others.push(argument);
            continue;
        };
        if option.replace(rest.next().unwrap_or_default()).is_some() {
            return Err(invalid(format!("{name} is given twice")));
        }
    }
    Ok(ReserveCall { query: read_query_from(others.into_iter(), SYNTAX)?, terms: terms(ttl, id)? })
}

fn terms(ttl: Option<&[u8]>, id: Option<&[u8]>) -> Result<ReservationTerms, ErrorReply> {
    let mut terms = ReservationTerms::default();
    if let Some(text) = ttl {
        let millis = parse_integer(text).and_then(|number| u64::try_from(number).ok());
        let millis = millis.filter(|millis| *millis <= MAX_NUMBER);
        let millis = millis
            .ok_or_else(|| ApiError::invalid("must be a number of milliseconds").at("ttl"))?;
        let set = terms.ttl(Duration::from_millis(millis));
        terms = set.map_err(|error| ApiError::from(&error).at("ttl"))?;
    }
    if let Some(id) = id {
        let id = std::str::from_utf8(id);
        let id = id.map_err(|_| ApiError::invalid("is not UTF-8").at("id"))?;
        terms = terms.id(id).map_err(|error| ApiError::from(&error))?;
    }
    Ok(terms)
}

/// Reads `reservation COST unit=n…`; `COST 0` cancels.
pub(super) fn read_settle(arguments: &Arguments<'_>) -> Result<SettleCall, ErrorReply> {
    let token = parse_token(&text_of(arguments.get(1), "reservation")?)?;
    let mut costs = CostArguments::default();
    let mut rest = arguments.from(2);
    while let Some(argument) = rest.next() {
        // One COST can be followed by several units, because there are no facts.
        let is_keyword = argument.eq_ignore_ascii_case(b"COST");
        if !is_keyword && (costs.is_empty() || !argument.contains(&b'=')) {
            return Err(invalid("syntax error: expected COST unit=n… or COST 0"));
        }
        costs.read(if is_keyword { rest.next() } else { Some(argument) })?;
    }
    // `COST requests=0` is something else: it keeps the estimates of the other units.
    let finals = match costs.is_zero_requests() {
        true => FinalCosts::cancelled(),
        false => FinalCosts::of(costs.build()?),
    };
    Ok(SettleCall { token, finals })
}

/// Reads the permit or the reservation of `TOLLGATE.RELEASE` and `TOLLGATE.RENEW`. A reservation starts with `r`, which
/// no permit does.
pub(super) fn read_held(arguments: &Arguments<'_>) -> Result<Held, ErrorReply> {
    let text = text_of(arguments.get(1), "permit")?;
    if text.starts_with('r') {
        return Ok(Held::Reservation(parse_token(&text)?));
    }
    let permit = text.parse().map_err(|error: PermitError| error.to_string());
    let permit = permit.map_err(|reason| ApiError::invalid(reason).at("permit"))?;
    Ok(Held::Permit(permit))
}

fn text_of(argument: Option<&[u8]>, field: &str) -> Result<String, ErrorReply> {
    let text = String::from_utf8(argument.unwrap_or_default().to_vec());
    text.map_err(|_| ApiError::invalid("is not UTF-8").at(field).into())
}

/// Encodes the outcome of a reservation: as a decision, with the reservation and `expires_at_ms` if it is allowed.
pub(super) fn encode_reserved(reserved: &ReserveOutcome<'_, '_>, replies: &mut Replies) {
    let Some(record) = reserved.record else {
        return encode_decision(reserved.outcome, replies);
    };
    let handle =
        Handle { text: record.token().to_string(), expires_at: unix_millis(record.expires_at()) };
    // A repeated id returns the first reservation, which was allowed, whatever the limits would decide now.
    encode_fields(reserved.outcome, Verdict::Allow, Some(handle), replies);
}

/// Encodes a settlement: `[settled, repeated]`.
pub(super) fn encode_settled(is_settled: bool, is_repeated: bool, replies: &mut Replies) {
    replies.array(2);
    replies.integer(u8::from(is_settled));
    replies.integer(u8::from(is_repeated));
}
