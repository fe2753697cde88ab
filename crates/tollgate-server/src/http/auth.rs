//! Authentication middleware of the router's paths: tokens, sessions and cross-site checks.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::Method;

use super::connection::Peer;
use crate::access::{Admission, Fingerprint, Role, ensure_from_dashboard, is_cross_site};
use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};

/// The token that authenticated a request, stored in its extensions. `None` if the path needs no token.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuthToken(pub(super) Option<Fingerprint>);

pub(super) async fn check(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    authenticate(&app, Role::Check, request, next).await
}

pub(super) async fn read(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    authenticate(&app, Role::Read, request, next).await
}

pub(super) async fn admin(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if is_cross_site(request.headers()) {
        let detail = "cross-site request rejected: Origin or Sec-Fetch-Site names another site";
        return Err(ApiError::new(ApiErrorKind::Forbidden, detail));
    }
    authenticate(&app, Role::Admin, request, next).await
}

async fn authenticate(
    app: &App,
    role: Role,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let Some(Peer(peer)) = request.extensions().get::<Peer>() else {
        return Err(ApiError::peer_missing());
    };
    let admission = app.guard().admit(role, request.headers(), peer.ip())?;
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if matches!(admission, Admission::Session(_)) && !is_read {
        ensure_from_dashboard(request.headers())?;
    }
    request.extensions_mut().insert(AuthToken(admission.token()));
    Ok(next.run(request).await)
}
