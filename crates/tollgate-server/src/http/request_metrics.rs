//! Counts the requests that go through the router, by route and status.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;

use crate::api::Service;

/// Adds a layer that counts every request of the router. The duration of a stream ends with the head of its response.
pub(super) fn record(service: Arc<Service>, router: Router) -> Router {
    router.layer(from_fn_with_state(service, count))
}

async fn count(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    // Paths can contain client names, so they are counted by the template of their route.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    let status = response.status().as_u16();
    service.http_requests().count(route, status, started.elapsed());
    response
}
