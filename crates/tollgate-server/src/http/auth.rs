//! What stands before the router's paths: tokens, and no pages of other sites.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::Method;

use super::connection::Peer;
use crate::access::{Admission, Fingerprint, Role, ensure_from_page, is_foreign};
use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};

/// By which token a request was let in, if by one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admitted(pub(super) Option<Fingerprint>);

pub(super) async fn check(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    admitted(&app, Role::Check, request, next).await
}

pub(super) async fn read(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    admitted(&app, Role::Read, request, next).await
}

pub(super) async fn admin(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if is_foreign(request.headers()) {
        let detail = "this is not for pages of other sites";
        return Err(ApiError::new(ApiErrorKind::Forbidden, detail));
    }
    admitted(&app, Role::Admin, request, next).await
}

async fn admitted(
    app: &App,
    role: Role,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let admission = match request.extensions().get::<Peer>() {
        Some(Peer(peer)) => app.guard().admit(role, request.headers(), peer.ip())?,
        // Requests come by connections, and those have peers.
        None => return Err(ApiError::new(ApiErrorKind::Unauthorized, "nobody asks")),
    };
    let is_looking = matches!(*request.method(), Method::GET | Method::HEAD);
    if matches!(admission, Admission::Session(_)) && !is_looking {
        ensure_from_page(request.headers())?;
    }
    request.extensions_mut().insert(Admitted(admission.token()));
    Ok(next.run(request).await)
}
