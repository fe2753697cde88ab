//! The rate-limited service.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tollgate::{Observer, Store};
use tower_service::Service;

use super::admission::Admission;
use super::body_mode::{BodyMode, WrapBody};
use super::exposed::Exposed;
use super::future::ResponseFuture;
use super::in_flight::InFlight;
use super::settings::Settings;
use crate::facts::RequestHead;

/// A service behind a [`RateLimitLayer`](crate::RateLimitLayer).
pub struct RateLimit<V, S, O: Observer = (), M = WrapBody> {
    inner: V,
    settings: Arc<Settings<S, O>>,
    mode: PhantomData<fn() -> M>,
}

impl<V, S, O: Observer, M> RateLimit<V, S, O, M> {
    pub(super) const fn new(inner: V, settings: Arc<Settings<S, O>>) -> Self {
        Self { inner, settings, mode: PhantomData }
    }
}

impl<V: Clone, S, O: Observer, M> Clone for RateLimit<V, S, O, M> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), Arc::clone(&self.settings))
    }
}

impl<V, S, O: Observer, M> fmt::Debug for RateLimit<V, S, O, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<V, S, O, A, B, M> Service<Request<A>> for RateLimit<V, S, O, M>
where
    V: Service<Request<A>, Response = Response<B>> + Clone,
    S: Store + 'static,
    O: Observer + 'static,
    B: Body,
    B::Data: From<Bytes>,
    M: BodyMode<B>,
{
    type Response = Response<M::Body>;
    type Error = V::Error;
    type Future = ResponseFuture<V, A, B, V::Future, S, O, M>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), V::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        if S::IS_IMMEDIATE && !self.settings.reservation.is_enabled() {
            let admission = Admission::decide_now(&self.settings, &RequestHead::from(&request));
            return match admission {
                Admission::Refused(refusal) => ResponseFuture::refused(refusal),
                Admission::Admitted(in_flight, None) => {
                    ResponseFuture::admitted(self.inner.call(request), in_flight)
                }
                Admission::Admitted(in_flight, Some(exposed)) => {
                    let request = with_extensions(request, *exposed);
                    ResponseFuture::admitted(self.inner.call(request), in_flight)
                }
            };
        }
        if self.settings.is_skipped(&RequestHead::from(&request)) {
            return ResponseFuture::admitted(self.inner.call(request), InFlight::default());
        }
        let (head, body) = request.into_parts();
        let admission = Admission::decide_async(&self.settings, head);
        // Call the instance that reported readiness, not its clone.
        let next = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, next);
        ResponseFuture::deciding(admission, ready, body)
    }
}

#[inline(never)]
fn with_extensions<A>(mut request: Request<A>, exposed: Exposed) -> Request<A> {
    exposed.insert_into(request.extensions_mut());
    request
}
