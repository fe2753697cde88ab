//! Authentication of requests: tokens, sessions and cross-site checks.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::Method;

use super::credentials::{authorizations, credentials};
use super::origin::{ensure_from_dashboard, is_cross_site};
use super::protocol::Peer;
use super::reply::{Reply, problem};
use crate::access::{Admission, Fingerprint, Role, token_credentials};
use crate::api::Service;
use crate::error::{ApiError, ApiErrorKind};

/// The token that authenticated a request, stored in its extensions. `None` if the path needs no token.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuthToken(pub(super) Option<Fingerprint>);

/// Authenticates a decision call, or returns the response that refuses it.
#[inline]
#[expect(clippy::result_large_err, reason = "the error is the response, which is sent at once")]
pub(super) fn admit_check<B>(
    service: &Service,
    request: &hyper::Request<B>,
    peer: IpAddr,
) -> Result<(), Reply> {
    admit(service, || authorizations(request.headers()), peer)
}

/// As [`admit_check`], with the values of all `Authorization` headers.
#[inline]
#[expect(clippy::result_large_err, reason = "the error is the response, which is sent at once")]
pub(super) fn admit<'a, A: IntoIterator<Item = &'a [u8]>>(
    service: &Service,
    authorizations: impl FnOnce() -> A,
    peer: IpAddr,
) -> Result<(), Reply> {
    if service.is_open(Role::Check) {
        return Ok(());
    }
    let credentials = token_credentials(authorizations());
    let admission = service.authenticate(Role::Check, &credentials, peer);
    admission.map_err(|error| problem(&with_header_hint(error)))
}

/// Adds how a token is sent to the error about a missing one.
fn with_header_hint(error: ApiError) -> ApiError {
    match error.kind() {
        ApiErrorKind::TokenMissing => {
            let detail = format!("{error} as `Authorization: Bearer TOKEN`");
            ApiError::new(ApiErrorKind::TokenMissing, detail)
        }
        _ => error,
    }
}

pub(super) async fn check(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    authenticate(&service, Role::Check, request, next).await
}

pub(super) async fn read(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    authenticate(&service, Role::Read, request, next).await
}

pub(super) async fn admin(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if is_cross_site(request.headers()) {
        let detail = "cross-site request rejected: Origin or Sec-Fetch-Site names another site";
        return Err(ApiError::new(ApiErrorKind::Forbidden, detail));
    }
    authenticate(&service, Role::Admin, request, next).await
}

async fn authenticate(
    service: &Service,
    role: Role,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let Some(Peer(peer)) = request.extensions().get::<Peer>() else {
        return Err(ApiError::peer_missing());
    };
    let admission = service.guard().admit(role, &credentials(request.headers()), peer.ip());
    let admission = admission.map_err(with_header_hint)?;
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if matches!(admission, Admission::Session(_)) && !is_read {
        ensure_from_dashboard(request.headers())?;
    }
    request.extensions_mut().insert(AuthToken(admission.token()));
    Ok(next.run(request).await)
}
