//! The routing table, and the errors for unknown paths and methods.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, put};
use hyper::{Method, Uri};
use tollgate::Verb;

use super::reply::Reply;
use super::{Surface, admin, auth, dashboard, decide, docs, health, listings, live, session};
use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};
use crate::telemetry::Span;

/// Returns the router of a surface.
pub(super) fn router(surface: Surface, app: Arc<App>) -> Router {
    let router = match surface {
        Surface::All => decision_routes(&app).merge(operator_routes(&app)),
        Surface::Decisions => decision_routes(&app),
        Surface::Operations => operator_routes(&app),
    };
    router
        .route("/metrics", get(health::metrics))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/openapi.json", get(docs::openapi))
        .route("/docs", get(docs::page))
        .route("/docs/page.js", get(docs::script))
        .route("/docs/page.css", get(docs::style))
        .route("/docs/icon.svg", get(docs::icon))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

fn decision_routes(app: &Arc<App>) -> Router<Arc<App>> {
    let one = |verb: Verb| {
        post(move |State(app): State<Arc<App>>, request: Request| async move {
            decide::decide(&app, verb, request, &mut Span::none()).await
        })
    };
    Router::new()
        .route("/check", one(Verb::Take))
        .route("/peek", one(Verb::Peek))
        .route("/refund", one(Verb::Refund))
        .route("/explain", post(explain))
        .route("/check/batch", post(batch))
        .route("/release", post(release))
        .route("/renew", post(renew))
        .route_layer(from_fn_with_state(Arc::clone(app), auth::check))
}

fn operator_routes(app: &Arc<App>) -> Router<Arc<App>> {
    let protected = Router::new()
        .route("/api/nodes", get(listings::nodes))
        .route("/api/counters", get(listings::counters))
        .route("/api/limits", get(listings::limits))
        .route("/api/blocks", get(listings::blocks))
        .route("/api/status", get(listings::status))
        .route("/api/live", get(live::live))
        .route("/api/explain", post(explain))
        .route_layer(from_fn_with_state(Arc::clone(app), auth::read));
    let routes = protected
        .route("/", get(dashboard::page))
        .route("/dashboard/{file}", get(dashboard::file))
        .route("/api/session", get(session::session))
        .route("/api/login", post(session::login))
        .route("/api/logout", post(session::logout));
    // Without an admin token the admin paths do not exist.
    if app.guard().has_admin() { routes.merge(admin_routes(app)) } else { routes }
}

fn admin_routes(app: &Arc<App>) -> Router<Arc<App>> {
    let limits = put(admin::put_limits).get(admin::get_limits).delete(admin::delete_limits);
    Router::new()
        .route("/admin/external/clients/{id}/limits", limits)
        .route("/admin/external/clients/{id}/stats", get(admin::stats))
        .route("/admin/external/clients/{id}/reset", post(admin::reset))
        .route("/admin/overrides", get(admin::overrides))
        .route("/admin/audit", get(admin::audit))
        .route("/admin/policy/reload", post(admin::reload))
        .route_layer(from_fn_with_state(Arc::clone(app), auth::admin))
}

async fn explain(State(app): State<Arc<App>>, request: Request) -> Result<Reply, ApiError> {
    decide::explain(app, request).await
}

async fn batch(State(app): State<Arc<App>>, request: Request) -> Result<Reply, ApiError> {
    decide::batch(app, request).await
}

async fn release(State(app): State<Arc<App>>, request: Request) -> Result<Reply, ApiError> {
    decide::release(app, request).await
}

async fn renew(State(app): State<Arc<App>>, request: Request) -> Result<Reply, ApiError> {
    decide::renew(app, request).await
}

async fn not_found(uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(100).collect();
    ApiError::new(ApiErrorKind::NotFound, format!("no resource at {path}; see /docs"))
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(100).collect();
    ApiError::new(ApiErrorKind::Method, format!("{path} does not support {method}; see /docs"))
}
