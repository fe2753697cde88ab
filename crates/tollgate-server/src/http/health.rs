//! The paths for probes and Prometheus.

use std::sync::Arc;

use axum::extract::State;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use tollgate::MemoryStore;

use super::reply::{Reply, uncached, with_type};
use crate::app::App;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The process is alive.
pub(super) async fn healthz() -> Reply {
    uncached(with_type(StatusCode::OK, TEXT, "ok\n".into()))
}

/// Requests may be sent here.
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Reply {
    let (status, text) = if app.is_ready() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    };
    uncached(with_type(status, TEXT, text.into()))
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Reply {
    let text = app.metrics().render(app.backend().memory().map(MemoryStore::occupancy));
    uncached(with_type(StatusCode::OK, METRICS, text.into()))
}
