//! Logging in and out, for who uses a browser.

use std::sync::Arc;

use axum::extract::{Request, State};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, SET_COOKIE};
use serde::{Deserialize, Serialize};

use super::body::read;
use super::connection::Peer;
use super::reply::{Reply, json, uncached, with_type};
use crate::access::{Role, Session, ensure_from_page, forgotten};
use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};
use crate::wire::parse::parse;
use crate::wire::scalar::Text;
use crate::wire::time::rfc3339;

/// A token is short.
const MAX_LOGIN_BODY: usize = 4096;

/// What may be done by who asks.
#[derive(Debug, Serialize)]
struct Standing {
    read: bool,
    admin: bool,
    /// Whether there is any token to log in with.
    login: bool,
    /// Whether anything can be changed here by who may.
    administered: bool,
    until: Option<String>,
}

impl Standing {
    fn of(app: &App, session: Option<Session>) -> Self {
        let guard = app.guard();
        let may = |role: Role| session.is_some_and(|session| session.may(role));
        Self {
            read: guard.is_open(Role::Read) || may(Role::Read),
            admin: may(Role::Admin),
            login: guard.has_login(),
            administered: guard.has_admin(),
            until: session.map(|session| rfc3339(session.until)),
        }
    }
}

/// GET /api/session.
pub(super) async fn session(State(app): State<Arc<App>>, headers: HeaderMap) -> Reply {
    uncached(json(&Standing::of(&app, app.guard().session(&headers))))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Login<'a> {
    #[serde(borrow)]
    token: Text<'a>,
}

/// POST /api/login.
pub(super) async fn login(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Reply, ApiError> {
    if !app.guard().has_login() {
        let detail = "there is no token to log in with; see SECURITY.md for how to set one";
        return Err(ApiError::new(ApiErrorKind::NotFound, detail));
    }
    ensure_from_page(request.headers())?;
    let peer = request.extensions().get::<Peer>().copied();
    let nobody = || ApiError::new(ApiErrorKind::Unauthorized, "nobody asks");
    let Peer(peer) = peer.ok_or_else(nobody)?;
    let body = read(request, MAX_LOGIN_BODY).await?;
    let given: Login<'_> = parse(&body)?;
    let (session, cookie) = app.guard().log_in(given.token.as_str(), peer.ip())?;
    let reply = uncached(json(&Standing::of(&app, Some(session))));
    Ok(with_cookie(reply, &cookie))
}

/// POST /api/logout.
pub(super) async fn logout(headers: HeaderMap) -> Result<Reply, ApiError> {
    ensure_from_page(&headers)?;
    let kind = HeaderValue::from_static("application/json");
    let mut reply = uncached(with_type(StatusCode::NO_CONTENT, kind, Bytes::new()));
    reply.headers_mut().remove(CONTENT_TYPE);
    Ok(with_cookie(reply, &forgotten()))
}

fn with_cookie(mut reply: Reply, cookie: &str) -> Reply {
    if let Ok(mut value) = HeaderValue::from_str(cookie) {
        value.set_sensitive(true);
        reply.headers_mut().insert(SET_COOKIE, value);
    }
    reply
}
