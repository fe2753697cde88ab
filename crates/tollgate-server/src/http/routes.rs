//! The routing table, and the errors for unknown paths and methods.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{get, post, put};
use hyper::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Method, Uri};
use tollgate::Verb;

use super::protocol::{Counters, Surface};
use super::reply::Reply;
use super::{
    admin, auth, dashboard, decide, docs, health, held, host, listings, live, reservations, session,
};
use crate::api::Service;
use crate::error::{ApiError, ApiErrorKind};
use crate::settings::AllowedHosts;
use crate::telemetry::Span;

/// Returns the router of a surface.
pub(super) fn router(
    surface: Surface,
    service: Arc<Service>,
    allowed_hosts: AllowedHosts,
) -> Router {
    let allowed_hosts = Arc::new(allowed_hosts);
    let decision_routes = || {
        let check = from_fn_with_state(Arc::clone(&allowed_hosts), host::check_page);
        decision_routes(&service).route_layer(check)
    };
    let operator_routes = || {
        let check = from_fn_with_state(Arc::clone(&allowed_hosts), host::check);
        operator_routes(&service).route_layer(check)
    };
    let router = match surface {
        Surface::All => decision_routes().merge(operator_routes()),
        Surface::Decisions => decision_routes(),
        Surface::Operations => operator_routes(),
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
        .layer(map_response(with_nosniff))
        .with_state(service)
}

/// Adds `X-Content-Type-Options: nosniff`, because responses contain text of clients.
async fn with_nosniff(mut response: Response) -> Response {
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn decision_routes(service: &Arc<Service>) -> Router<Arc<Service>> {
    let one = |verb: Verb| {
        post(move |State(service): State<Arc<Service>>, request: Request| async move {
            decide::decide(&service, verb, request, &mut Span::none()).await
        })
    };
    Router::new()
        .route("/check", one(Verb::Take))
        .route("/peek", one(Verb::Peek))
        .route("/refund", one(Verb::Refund))
        .route("/explain", post(explain))
        .route("/check/batch", post(batch))
        .route("/reserve", post(reserve))
        .route("/settle", post(settle))
        .route("/release", post(release))
        .route("/renew", post(renew))
        .route_layer(from_fn(count_request))
        // The last layer is the first to see a request.
        .route_layer(from_fn_with_state(Arc::clone(service), auth::check))
}

fn operator_routes(service: &Arc<Service>) -> Router<Arc<Service>> {
    let protected = Router::new()
        .route("/api/nodes", get(listings::nodes))
        .route("/api/counters", get(listings::counters))
        .route("/api/limits", get(listings::limits))
        .route("/api/blocks", get(listings::blocks))
        .route("/api/clients/{id}", get(listings::client))
        .route("/api/events", get(listings::events))
        .route("/api/history", get(listings::history))
        .route("/api/status", get(listings::status))
        .route("/api/live", get(live::live))
        .route("/api/explain", post(explain))
        .route_layer(from_fn_with_state(Arc::clone(service), auth::read));
    let routes = protected
        .route("/", get(dashboard::page))
        .route("/dashboard/{file}", get(dashboard::file))
        .route("/api/session", get(session::session))
        .route("/api/login", post(session::login))
        .route("/api/logout", post(session::logout));
    // Without an admin token the admin paths do not exist.
    if service.guard().has_admin() { routes.merge(admin_routes(service)) } else { routes }
}

fn admin_routes(service: &Arc<Service>) -> Router<Arc<Service>> {
    let limits = put(admin::put_limits).get(admin::get_limits).delete(admin::delete_limits);
    Router::new()
        .route("/admin/external/clients/{id}/limits", limits)
        .route("/admin/external/clients/{id}/stats", get(admin::stats))
        .route("/admin/external/clients/{id}/reset", post(admin::reset))
        .route("/admin/overrides", get(admin::overrides))
        .route("/admin/audit", get(admin::audit))
        .route("/admin/policy/reload", post(admin::reload))
        .route_layer(from_fn_with_state(Arc::clone(service), auth::admin))
}

/// Counts an authenticated decision request.
async fn count_request(request: Request, next: Next) -> Response {
    if let Some(Counters(counters)) = request.extensions().get() {
        counters.add_requests(1);
    }
    next.run(request).await
}

async fn explain(State(service): State<Arc<Service>>, request: Request) -> Result<Reply, ApiError> {
    decide::explain(&service, request).await
}

async fn batch(State(service): State<Arc<Service>>, request: Request) -> Result<Reply, ApiError> {
    decide::batch(&service, request).await
}

async fn reserve(State(service): State<Arc<Service>>, request: Request) -> Result<Reply, ApiError> {
    reservations::reserve(&service, request).await
}

async fn settle(State(service): State<Arc<Service>>, request: Request) -> Result<Reply, ApiError> {
    reservations::settle(&service, request).await
}

async fn release(State(service): State<Arc<Service>>, request: Request) -> Result<Reply, ApiError> {
    held::release(&service, request).await
}

async fn renew(State(service): State<Arc<Service>>, request: Request) -> Result<Reply, ApiError> {
    held::renew(&service, request).await
}

async fn not_found(uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(100).collect();
    ApiError::new(ApiErrorKind::NotFound, format!("no resource at {path}; see /docs"))
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(100).collect();
    ApiError::new(ApiErrorKind::Method, format!("{path} does not support {method}; see /docs"))
}
