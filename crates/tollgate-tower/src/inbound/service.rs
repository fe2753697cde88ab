//! The rate-limited service.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tollgate::{Observer, Store};
use tower_service::Service;

use super::admission::Admission;
use super::body::ResponseBody;
use super::future::ResponseFuture;
use super::settings::Settings;
use crate::facts::RequestHead;

/// A service behind a [`RateLimitLayer`](crate::RateLimitLayer).
pub struct RateLimit<V, S, O: Observer = ()> {
    inner: V,
    settings: Arc<Settings<S, O>>,
}

impl<V, S, O: Observer> RateLimit<V, S, O> {
    pub(super) const fn new(inner: V, settings: Arc<Settings<S, O>>) -> Self {
        Self { inner, settings }
    }
}

impl<V: Clone, S, O: Observer> Clone for RateLimit<V, S, O> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), settings: Arc::clone(&self.settings) }
    }
}

impl<V, S, O: Observer> fmt::Debug for RateLimit<V, S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<V, S, O, A, B> Service<Request<A>> for RateLimit<V, S, O>
where
    V: Service<Request<A>, Response = Response<B>> + Clone,
    S: Store + 'static,
    O: Observer + 'static,
    B: Body,
    B::Data: From<Bytes>,
{
    type Response = Response<ResponseBody<B>>;
    type Error = V::Error;
    type Future = ResponseFuture<V, A, B, V::Future, S, O>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), V::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let head = RequestHead::from(&request);
        if self.settings.is_skipped(&head) {
            return ResponseFuture::skipped(self.inner.call(request));
        }
        if S::IS_IMMEDIATE {
            return match Admission::decide_now(&self.settings, &head) {
                Admission::Refused(refusal) => ResponseFuture::refused(refusal),
                Admission::Admitted(in_flight, exposed) => {
                    if let Some(decision) = exposed {
                        request.extensions_mut().insert(decision);
                    }
                    ResponseFuture::admitted(self.inner.call(request), in_flight)
                }
            };
        }
        let (head, body) = request.into_parts();
        let admission = Admission::decide_async(&self.settings, head);
        // Call the instance that reported readiness, not its clone.
        let next = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, next);
        ResponseFuture::deciding(admission, ready, body)
    }
}
