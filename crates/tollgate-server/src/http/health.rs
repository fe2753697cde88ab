//! Handlers for liveness, readiness and metrics.

use std::sync::Arc;

use axum::extract::State;
use hyper::StatusCode;
use hyper::header::HeaderValue;

use super::reply::{Reply, uncached, with_type};
use crate::api::Service;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// GET /healthz: liveness.
pub(super) async fn healthz() -> Reply {
    uncached(with_type(StatusCode::OK, TEXT, "ok\n".into()))
}

/// GET /readyz: readiness.
pub(super) async fn readyz(State(service): State<Arc<Service>>) -> Reply {
    let (status, text) = match (service.is_ready(), service.is_degraded()) {
        (true, false) => (StatusCode::OK, "ready\n"),
        // Still ready: the other nodes share the same store.
        (true, true) => (StatusCode::OK, "ready, degraded: store lost\n"),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
    };
    uncached(with_type(status, TEXT, text.into()))
}

pub(super) async fn metrics(State(service): State<Arc<Service>>) -> Reply {
    uncached(with_type(StatusCode::OK, METRICS, service.metrics().into()))
}
