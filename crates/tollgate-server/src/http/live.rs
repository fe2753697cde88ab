//! The live view as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use futures_util::stream::unfold;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};

use crate::api::Service;
use crate::error::{ApiError, ApiErrorKind};
use crate::node::live::Watcher;

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// GET /api/live.
pub(super) async fn live(State(service): State<Arc<Service>>) -> Result<Response, ApiError> {
    let too_many = || {
        let detail = "too many live streams are open on this node; close one or retry later";
        ApiError::new(ApiErrorKind::Unavailable, detail)
    };
    let watcher = Watcher::new(service.live()).ok_or_else(too_many)?;
    let events = unfold(watcher, async |mut watcher| {
        let events = watcher.next().await?;
        Some((Ok::<_, Infallible>(events), watcher))
    });
    let mut response = Response::new(Body::from_stream(events));
    response.headers_mut().insert(CONTENT_TYPE, EVENTS);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    // A proxy that buffers responses would delay events by minutes.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}
