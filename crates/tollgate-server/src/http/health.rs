//! Handlers for liveness, readiness and metrics.

use std::sync::Arc;

use axum::extract::State;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use tollgate::{FallbackStore, MemoryStore};

use super::reply::{Reply, uncached, with_type};
use crate::app::App;
use crate::metrics::{Readiness, ScrapeContext};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// GET /healthz: liveness.
pub(super) async fn healthz() -> Reply {
    uncached(with_type(StatusCode::OK, TEXT, "ok\n".into()))
}

/// GET /readyz: readiness.
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Reply {
    let (status, text) = match (app.is_ready(), app.is_degraded()) {
        (true, false) => (StatusCode::OK, "ready\n"),
        // Still ready: the other nodes share the same store.
        (true, true) => (StatusCode::OK, "ready, degraded: store lost\n"),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
    };
    uncached(with_type(status, TEXT, text.into()))
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Reply {
    let current = app.limiter().active_policy();
    let text = app.metrics().render(&ScrapeContext {
        occupancy: app.backend().memory().map(MemoryStore::occupancy),
        breaker: app.backend().fallback().map(FallbackStore::breaker),
        guard: app.guard(),
        overrides: current.overrides().len(),
        policy: current.policy().version(),
        readiness: if app.is_ready() { Readiness::Ready } else { Readiness::NotReady },
        watchers: app.live().watchers(),
        started: app.node().started,
    });
    uncached(with_type(StatusCode::OK, METRICS, text.into()))
}
