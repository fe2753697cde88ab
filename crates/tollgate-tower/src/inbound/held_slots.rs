//! The concurrency slots of a request that may become another protocol, for its handler.

use std::fmt;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, UPGRADE};
use http::{HeaderValue, Method, Response, StatusCode};

use super::slot_guard::SlotGuard;
use crate::facts::RequestHead;

/// The body of the response in place of an upgrade without its slots.
const REFUSED_UPGRADE: &[u8] = br#"{"type":"about:blank","title":"Not Implemented","status":501,"detail":"the connection cannot be upgraded: a concurrency limit applies, and the handler does not hold its slots (HeldSlots)"}"#;

/// The concurrency slots of a request that asks for an upgrade, such as a WebSocket, in its extensions. They end with the
/// response, unless the handler [holds](Self::hold) them.
///
/// If a service upgrades a connection and does not hold the slots, the layer responds with 501 instead, because the slots
/// would end although the connection goes on. Requests without slots, or without `Upgrade` or `CONNECT`, have no such
/// extension.
#[derive(Clone)]
pub struct RequestSlots(Weak<SlotGuard>);

/// Concurrency slots that are held until the response has ended and this handle is dropped. Move it into the task that serves the
/// upgraded connection. With axum, `Option<HeldSlots>` is an extractor.
///
/// ```
/// use axum::response::Response;
/// use tollgate_tower::HeldSlots;
///
/// async fn chat(slots: Option<HeldSlots>) -> Response {
///     tokio::spawn(async move {
///         // Serve the upgraded connection here.
///         drop(slots);
///     });
/// #   Response::default()
/// }
/// ```
pub struct HeldSlots {
    /// Only kept: the slots are released when the last reference is dropped.
    _slots: Arc<SlotGuard>,
}

impl RequestSlots {
    /// Holds the slots longer than the response. Call it before the response is returned; afterwards it returns `None`.
    #[must_use]
    pub fn hold(&self) -> Option<HeldSlots> {
        Some(HeldSlots { _slots: self.0.upgrade()? })
    }
}

/// Omits the permit.
impl fmt::Debug for RequestSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestSlots").finish_non_exhaustive()
    }
}

/// Omits the permit.
impl fmt::Debug for HeldSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldSlots").finish_non_exhaustive()
    }
}

/// The slots that a layer holds while a request is served.
pub(super) struct ServedSlots {
    slots: Arc<SlotGuard>,
    upgrade: Upgrade,
}

impl ServedSlots {
    pub(super) fn new(slots: SlotGuard, request: &RequestHead<'_>) -> Self {
        Self { slots: Arc::new(slots), upgrade: Upgrade::of(request) }
    }

    /// Returns the slots for the extensions of the request, if its connection may be upgraded.
    pub(super) fn for_handler(&self) -> Option<RequestSlots> {
        let is_requested = self.upgrade != Upgrade::NotRequested;
        is_requested.then(|| RequestSlots(Arc::downgrade(&self.slots)))
    }

    /// Returns whether the response upgrades the connection, and the slots would end with the response.
    pub(super) fn would_end_early<B>(&self, response: &Response<B>) -> bool {
        self.upgrade.is_accepted_by(response) && Arc::strong_count(&self.slots) == 1
    }
}

/// How a request asks for another protocol on its connection or stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upgrade {
    NotRequested,
    /// The header `Upgrade` of HTTP/1.1.
    Header,
    /// The method `CONNECT`, which a WebSocket over HTTP/2 has too.
    Connect,
}

impl Upgrade {
    pub(super) fn of(request: &RequestHead<'_>) -> Self {
        if *request.method == Method::CONNECT {
            Self::Connect
        } else if request.headers.contains_key(UPGRADE) {
            Self::Header
        } else {
            Self::NotRequested
        }
    }

    pub(super) fn is_accepted_by<B>(self, response: &Response<B>) -> bool {
        match self {
            Self::NotRequested => false,
            Self::Header => response.status() == StatusCode::SWITCHING_PROTOCOLS,
            Self::Connect => response.status().is_success(),
        }
    }
}

/// Returns the response in place of one that upgrades the connection.
pub(super) fn refused_upgrade() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(REFUSED_UPGRADE));
    *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(feature = "axum")]
impl<S: Send + Sync> axum::extract::OptionalFromRequestParts<S> for HeldSlots {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        _: &S,
    ) -> Result<Option<Self>, Self::Rejection> {
        Ok(parts.extensions.get::<RequestSlots>().and_then(RequestSlots::hold))
    }
}
