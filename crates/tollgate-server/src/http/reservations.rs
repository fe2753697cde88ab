//! Handlers of `/reserve` and `/settle`.

use hyper::Request;
use tollgate::ReserveOutcome;

use super::body::{MAX_BODY, RequestBody, read};
use super::decide::decision_reply;
use super::delivery::undelivered;
use super::reply::{Reply, json, json_bytes};
use crate::api::Service;
use crate::error::ApiError;
use crate::telemetry::Span;
use crate::wire::decision::{HandleText, decision_json_with};
use crate::wire::parse::parse;
use crate::wire::reservation::{ReserveBody, SettleBody, reservation_text};
use crate::wire::settled::SettleResponse;

/// POST /reserve: takes an estimate that is settled later.
pub(super) async fn reserve<B>(service: &Service, request: Request<B>) -> Result<Reply, ApiError>
where
    B: RequestBody,
{
    let body = read(request, MAX_BODY).await?;
    let (query, terms) = parse::<ReserveBody<'_>>(&body)?.into_parts()?;
    let span = &mut Span::none();
    let (reply, permit) = service.reserve_undelivered(&query, terms, span, reserve_reply).await?;
    Ok(undelivered(reply, permit))
}

/// Encodes the outcome of a reservation: status 200 whether it is allowed or refused.
fn reserve_reply(reserved: &ReserveOutcome<'_, '_>) -> Reply {
    match reservation_text(reserved) {
        Some(text) => {
            json_bytes(decision_json_with(reserved.outcome, HandleText::Reservation(&text)))
        }
        None => decision_reply(reserved.outcome),
    }
}

/// POST /settle: replaces the estimate of a reservation by the amounts that were used.
pub(super) async fn settle<B>(service: &Service, request: Request<B>) -> Result<Reply, ApiError>
where
    B: RequestBody,
{
    let body = read(request, MAX_BODY).await?;
    let settlement = parse::<SettleBody<'_>>(&body)?.into_settlement()?;
    let settled =
        service.settle(&settlement.token, settlement.tenant(), &settlement.finals).await?;
    Ok(json(&SettleResponse::new(&settled)))
}
