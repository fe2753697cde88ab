//! Handlers of `/release` and `/renew`.

use hyper::Request;
use serde::Deserialize;
use tollgate::PermitError;

use super::body::{MAX_PERMIT_BODY, RequestBody, read};
use super::reply::{Reply, json};
use crate::api::{Held, Service};
use crate::error::ApiError;
#[cfg(test)]
use crate::reference_tests::names;
use crate::wire::parse::parse;
use crate::wire::permit::{ReleaseResponse, RenewResponse};
use crate::wire::reservation::parse_token;
use crate::wire::scalar::{Text, present};

/// Body of `/release` and `/renew`. Send either a permit or a reservation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(
    test,
    schemars(extend("oneOf" = [{ "required": ["permit"] }, { "required": ["reservation"] }]))
)]
pub(crate) struct HeldBody<'a> {
    /// The permit of a decision.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::PermitText"))]
    permit: Option<Text<'a>>,
    /// The reservation of /reserve.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::ReservationText"))]
    reservation: Option<Text<'a>>,
}

impl HeldBody<'_> {
    pub(crate) fn build(&self) -> Result<Held, ApiError> {
        let invalid = |detail: &str| Err(ApiError::invalid(detail).at("permit"));
        match (&self.permit, &self.reservation) {
            (Some(_), Some(_)) => {
                invalid("`permit` and `reservation` exclude each other; send one of them")
            }
            (None, None) => invalid("is missing: send `permit` or `reservation`"),
            (Some(permit), None) => match permit.as_str().parse() {
                Ok(permit) => Ok(Held::Permit(permit)),
                Err(error) => invalid(&PermitError::to_string(&error)),
            },
            (None, Some(token)) => parse_token(token.as_str()).map(Held::Reservation),
        }
    }
}

/// POST /release: releases concurrency slots before they expire, or cancels a reservation.
pub(super) async fn release<B>(service: &Service, request: Request<B>) -> Result<Reply, ApiError>
where
    B: RequestBody,
{
    let released = service.release_held(&read_held(request).await?).await?;
    Ok(json(&ReleaseResponse { released }))
}

/// POST /renew: extends concurrency slots or a reservation by their full lifetime from now.
pub(super) async fn renew<B>(service: &Service, request: Request<B>) -> Result<Reply, ApiError>
where
    B: RequestBody,
{
    let expires_at = service.renew_held(&read_held(request).await?).await?;
    Ok(json(&RenewResponse::new(expires_at)))
}

async fn read_held<B>(request: Request<B>) -> Result<Held, ApiError>
where
    B: RequestBody,
{
    let body = read(request, MAX_PERMIT_BODY).await?;
    parse::<HeldBody<'_>>(&body)?.build()
}
