//! Login, logout and session state for browsers.

use std::sync::Arc;

use axum::extract::{Request, State};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, SET_COOKIE};
use serde::{Deserialize, Serialize};

use super::body::read;
use super::credentials::{credentials, expired_cookie, session_cookie};
use super::origin::ensure_from_dashboard;
use super::protocol::Peer;
use super::reply::{Reply, json, uncached, with_type};
use crate::access::{Role, Session};
use crate::api::Service;
use crate::error::{ApiError, ApiErrorKind};
use crate::wire::parse::parse;
use crate::wire::scalar::Text;
use crate::wire::time::rfc3339;

/// Maximum size of a login body in bytes.
const MAX_LOGIN_BODY: usize = 4096;

/// Response of `/api/session` and `/api/login`: the permissions of the caller.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Session"))]
pub(crate) struct SessionResponse {
    /// Whether the caller may read /api.
    read: bool,
    /// Whether the caller may use /admin.
    admin: bool,
    /// Whether login is enabled.
    login: bool,
    /// Whether the admin API is enabled.
    administered: bool,
    /// The expiry of the session.
    #[cfg_attr(test, schemars(with = "Option<crate::reference_tests::names::Time>"))]
    until: Option<String>,
}

impl SessionResponse {
    fn of(service: &Service, session: Option<Session>) -> Self {
        let guard = service.guard();
        let permits = |role: Role| session.is_some_and(|session| session.permits(role));
        Self {
            read: guard.is_open(Role::Read) || permits(Role::Read),
            admin: permits(Role::Admin),
            login: guard.has_login(),
            administered: guard.has_admin(),
            until: session.map(|session| rfc3339(session.until)),
        }
    }
}

/// GET /api/session.
pub(super) async fn session(State(service): State<Arc<Service>>, headers: HeaderMap) -> Reply {
    uncached(json(&SessionResponse::of(&service, service.guard().session(&credentials(&headers)))))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Login<'a> {
    /// The read or the admin token.
    #[serde(borrow)]
    #[cfg_attr(test, schemars(with = "String"))]
    token: Text<'a>,
}

/// POST /api/login.
pub(super) async fn login(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Reply, ApiError> {
    if !service.guard().has_login() {
        let detail = "login is disabled: no read or admin token is configured (see SECURITY.md)";
        return Err(ApiError::new(ApiErrorKind::NotFound, detail));
    }
    ensure_from_dashboard(request.headers())?;
    let peer = request.extensions().get::<Peer>().copied();
    let Peer(peer) = peer.ok_or_else(ApiError::peer_missing)?;
    let body = read(request, MAX_LOGIN_BODY).await?;
    let login: Login<'_> = parse(&body)?;
    let (session, signed) = service.guard().log_in(login.token.as_str(), peer.ip())?;
    let reply = uncached(json(&SessionResponse::of(&service, Some(session))));
    Ok(with_cookie(reply, &session_cookie(&signed)))
}

/// POST /api/logout.
pub(super) async fn logout(headers: HeaderMap) -> Result<Reply, ApiError> {
    ensure_from_dashboard(&headers)?;
    let kind = HeaderValue::from_static("application/json");
    let mut reply = uncached(with_type(StatusCode::NO_CONTENT, kind, Bytes::new()));
    reply.headers_mut().remove(CONTENT_TYPE);
    Ok(with_cookie(reply, &expired_cookie()))
}

fn with_cookie(mut reply: Reply, cookie: &str) -> Reply {
    if let Ok(mut value) = HeaderValue::from_str(cookie) {
        value.set_sensitive(true);
        reply.headers_mut().insert(SET_COOKIE, value);
    }
    reply
}
