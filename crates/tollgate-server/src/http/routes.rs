//! Every path, and what a wrong one is told.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::{get, post};
use hyper::{Method, Uri};
use tollgate::Verb;

use super::reply::Reply;
use super::{Surface, decide, docs, health, listings};
use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};

/// The paths of a surface.
pub(super) fn router(surface: Surface, app: Arc<App>) -> Router {
    let router = match surface {
        Surface::Whole => deciding().merge(operating()),
        Surface::Deciding => deciding(),
        Surface::Operating => operating(),
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

fn deciding() -> Router<Arc<App>> {
    let one = |verb: Verb| {
        post(move |State(app): State<Arc<App>>, request: Request| async move {
            decide::decide(&app, verb, request).await
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
}

fn operating() -> Router<Arc<App>> {
    Router::new()
        .route("/api/nodes", get(listings::nodes))
        .route("/api/counters", get(listings::counters))
        .route("/api/limits", get(listings::limits))
        .route("/api/blocks", get(listings::blocks))
        .route("/api/status", get(listings::status))
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
    ApiError::new(ApiErrorKind::NotFound, format!("nothing is served at {path}; see /docs"))
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(100).collect();
    ApiError::new(ApiErrorKind::Method, format!("{path} is not for {method}; see /docs"))
}
